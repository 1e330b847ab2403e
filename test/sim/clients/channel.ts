/** The simulated {@link Channel}: reports what `client/grpc-channel.ts` reports, over {@link ClientLinks}. */
import type { Call } from '../../../src/base/api.js';
import type { NodeId } from '../../../src/base/ids.js';
import type { Channel, OpenChannel, Reply } from '../../../src/client/channel.js';
import type { Principal } from '../../../src/replica/types.js';
import { between, chance } from '../chance.js';
import type { Server, Surroundings } from '../ports.js';
import type { Attempts } from './attempts.js';
import { received, refusal, replyOf } from './codec.js';
import type { ClientLinks } from './network.js';
import type { ClientProcess } from './process.js';

/** How long a connection may take, as in `grpc-channel.ts`, in milliseconds. */
const CONNECT_MS = 1_000;
/** The port of every simulated node. */
const PORT = 7_101;

/** What the channels of one process need. */
export interface ChannelPorts {
  readonly surroundings: Surroundings;
  readonly process: ClientProcess;
  readonly links: ClientLinks;
  readonly attempts: Attempts;
  /** Names the machine, and one life of the process. */
  readonly client: string;
  readonly life: string;
  readonly servers: () => readonly Server[];
  /** Calls and answers pass through bytes. */
  readonly codecs: boolean;
}

/** The endpoint of a node. */
export function endpointOf(node: NodeId): string {
  return `${node}:${PORT}`;
}

/** Opens channels for one process. */
export function simChannels(ports: ChannelPorts): OpenChannel {
  return (endpoint) => openChannel(ports, endpoint.slice(0, endpoint.lastIndexOf(':')) as NodeId);
}

/** A channel to one node. */
export function openChannel(ports: ChannelPorts, node: NodeId): Channel {
  const connection = { connected: false };
  let closed = false;
  return {
    send(call, timeoutMs, done) {
      if (closed) throw new Error(`the channel to ${node} is closed`);
      // What is left of a killed process on the stack does nothing any more.
      if (ports.process.ended) return () => true;
      return sendOne(ports, node, connection, call, timeoutMs, done);
    },
    close() {
      closed = true;
    },
  };
}

function sendOne(
  ports: ChannelPorts,
  node: NodeId,
  connection: { connected: boolean },
  given: Call,
  timeoutMs: number,
  done: (reply: Reply) => void,
): () => boolean {
  const { surroundings, process, links, attempts, codecs } = ports;
  const { scheduler, random } = surroundings;
  const call = marked(given);
  const attempt = attempts.sent({
    client: ports.client,
    process: ports.life,
    rate: process.machine.rate,
    node,
    call,
    sentAt: scheduler.now,
  });
  /** It is on an established connection already: whatever its client does, it may arrive. */
  const wired = connection.connected;
  let reached = wired;
  let open = true;
  let cancelAtNode: () => void = () => undefined;
  const stop = (): void => {
    open = false;
    cancelTime();
    cancelConnecting();
    forget();
  };
  const finish = (reply: Reply): void => {
    if (!open) return;
    stop();
    attempts.told(attempt, reply, scheduler.now);
    done(reply);
  };
  const silent = (why: string): void => {
    process.deliver(() => {
      finish({ type: 'silent', reached, why });
    });
  };
  const goAway = (): void => {
    links.pass(node, () => {
      cancelAtNode();
    });
  };
  // The kernel closes the connections of a process that is killed.
  const forget = process.onEnd(() => {
    open = false;
    attempts.dropped(attempt, reached);
    goAway();
  });
  const cancelTime = process.after(timeoutMs, () => {
    finish({ type: 'silent', reached, why: `no answer within ${Math.ceil(timeoutMs)} ms` });
    goAway();
  });
  const cancelConnecting = wired
    ? (): void => undefined
    : process.after(CONNECT_MS, () => {
        if (!reached) silent(`no connection within ${CONNECT_MS} ms`);
      });

  const arrive = (): void => {
    if (!open && !wired) return;
    const server = ports.servers().find((candidate) => candidate.node === node);
    if (server?.listening !== true) {
      connection.connected = false;
      links.pass(node, () => {
        silent(wired ? 'the connection broke' : 'connection refused');
      });
      return;
    }
    connection.connected = true;
    reached = true;
    if (links.loses()) breakLater();
    else cancelAtNode = handOver(server);
  };
  /** A connection that breaks is mostly noticed; one that falls silent is not. */
  const breakLater = (): void => {
    if (chance(random, 300)) return;
    scheduler.after(between(random, 0, 200), () => {
      silent('the connection broke');
    });
  };
  const answerWith = (reply: Reply): void => {
    if (links.loses()) {
      breakLater();
      return;
    }
    links.pass(node, () => {
      process.deliver(() => {
        finish(reply);
      });
    });
  };
  const handOver = (server: Server): (() => void) => {
    const taken = received(call, codecs);
    if ('reason' in taken) {
      answerWith(refusal(taken, codecs));
      return () => undefined;
    }
    let atNode = true;
    const cancel = server.call(
      principalOf(ports.client),
      timeoutMs,
      taken,
      (header, result) => {
        if (!atNode) return;
        atNode = false;
        if (result.type === 'answer') attempt.answeredBy = { ...header, revision: result.revision };
        answerWith(replyOf(call, header, result, codecs));
      },
      () => {
        if (!atNode) return;
        atNode = false;
        connection.connected = false;
        links.pass(node, () => {
          silent('the connection broke');
        });
      },
    );
    const end = (): void => {
      if (!atNode) return;
      atNode = false;
      cancel();
    };
    // The server ends a call at its deadline, too.
    scheduler.after(timeoutMs, end);
    return end;
  };

  links.pass(node, arrive);
  return () => {
    if (!open) return reached;
    stop();
    attempts.dropped(attempt, reached);
    goAway();
    return reached;
  };
}

/** Answers name a lease's holder and metadata, not its request: so the judges know whose it is. */
function marked(call: Call): Call {
  return call.type === 'acquire' ? { ...call, metadata: [['request', call.requestId]] } : call;
}

/** As the real server names an unauthenticated client. */
export function principalOf(client: string): Principal {
  return { name: `addr:${client}`, authenticated: false };
}
