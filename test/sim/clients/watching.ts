/**
 * The simulated {@link OpenWatch}: what `client/grpc-watch.ts` and `server/watch-handler.ts` do, over {@link ClientLinks}. A
 * stream keeps its order, and holds some messages before the node has to wait for its reader.
 */
import type { NodeId } from '../../../src/base/ids.js';
import type { Failure } from '../../../src/base/errors.js';
import { failure } from '../../../src/base/errors.js';
import type { WatchCall } from '../../../src/base/watch.js';
import type { OpenedWatch, OpenWatch, WatchEnd, WatchListener } from '../../../src/client/watch-channel.js';
import { parseWatch, WATCH_METHOD } from '../../../src/wire/public-watch.js';
import type { ReadWatchMessage, WatchMessage } from '../../../src/wire/public-watch.js';
import { principalOf } from './channel.js';
import type { ChannelPorts } from './channel.js';
import { refusal } from './codec.js';

/** How long a connection may take, as in `grpc-watch.ts`, in milliseconds. */
const CONNECT_MS = 1_000;
/** A node notices after this at the latest that a connection was given up (`server/client-server.ts`), in milliseconds. */
const KEEP_ALIVE_MS = 15_000;

/** Opens watches for one process, with room for `window` messages on each. */
export function simWatches(ports: ChannelPorts, window: number): OpenWatch {
  return (endpoint, call, listener) => {
    const node = endpoint.slice(0, endpoint.lastIndexOf(':')) as NodeId;
    return new Stream(ports, node, window, call, listener);
  };
}

class Stream implements OpenedWatch {
  readonly #ports: ChannelPorts;
  readonly #node: NodeId;
  readonly #window: number;
  readonly #listener: WatchListener;
  /** On its way to the client, in order: the first one is under way. */
  readonly #lane: (() => void)[] = [];
  /** Has arrived and was not read. */
  readonly #arrived: (() => void)[] = [];
  /** Messages that have left the node and were not read. */
  #held = 0;
  /** Says that the message for which there was no room has left. */
  #left: (() => void) | undefined;
  #paused = false;
  #open = true;
  #reached = false;
  #closeAtNode: () => void = () => undefined;
  readonly #cancelConnecting: () => void;
  readonly #forget: () => void;

  constructor(ports: ChannelPorts, node: NodeId, window: number, call: WatchCall, listener: WatchListener) {
    this.#ports = ports;
    this.#node = node;
    this.#window = window;
    this.#listener = listener;
    // The kernel closes the connections of a process that is killed.
    this.#forget = ports.process.onEnd(() => {
      this.close();
    });
    this.#cancelConnecting = ports.process.after(CONNECT_MS, () => {
      if (!this.#reached) this.#end({ type: 'silent', reached: false, why: `no connection within ${CONNECT_MS} ms` });
    });
    ports.links.pass(node, () => {
      this.#arrive(call);
    });
  }

  pause(): void {
    this.#paused = true;
  }

  resume(): void {
    this.#paused = false;
    this.#readOn();
  }

  /** Until it is paused. */
  #readOn(): void {
    while (!this.#paused) {
      const next = this.#arrived.shift();
      if (next === undefined) return;
      next();
    }
  }

  close(): void {
    if (!this.#open) return;
    this.#open = false;
    this.#cancelConnecting();
    this.#forget();
    const { links, surroundings } = this.#ports;
    const gone = (): void => {
      this.#closeAtNode();
    };
    links.pass(this.#node, gone);
    // The word of it may get lost with the connection.
    surroundings.scheduler.after(KEEP_ALIVE_MS, gone);
  }

  #end(end: WatchEnd): void {
    if (!this.#open) return;
    this.close();
    this.#listener.end(end);
  }

  #arrive(call: WatchCall): void {
    const { servers, links, codecs, client } = this.#ports;
    if (!this.#open) return;
    const server = servers().find(({ node }) => node === this.#node);
    if (server?.listening !== true) {
      this.#breaks('connection refused');
      return;
    }
    this.#reached = true;
    if (links.loses()) {
      this.#breaks('the connection broke');
      return;
    }
    const taken = received(call, codecs);
    if ('reason' in taken) {
      this.#endsAtNode(taken);
      return;
    }
    const sink = {
      send: (message: WatchMessage, sent: () => void): void => {
        this.#send(message, sent);
      },
      end: (fault: Failure | undefined): void => {
        this.#endsAtNode(fault);
      },
    };
    this.#closeAtNode = server.watch(principalOf(client), taken, sink, () => {
      this.#breaks('the connection broke');
    });
  }

  #send(message: WatchMessage, sent: () => void): void {
    const { links, codecs, surroundings } = this.#ports;
    if (links.loses()) {
      surroundings.coverage.count('watch broke');
      this.#closeAtNode();
      this.#breaks('the connection broke');
      return;
    }
    this.#held++;
    if (this.#held <= this.#window) surroundings.scheduler.soon(sent);
    else {
      surroundings.coverage.count('watch waits for its reader');
      this.#left = sent;
    }
    this.#carry(() => {
      this.#arrived.push(() => {
        this.#read(message, codecs);
      });
    });
  }

  #read(message: WatchMessage, codecs: boolean): void {
    this.#held--;
    const left = this.#left;
    this.#left = undefined;
    left?.();
    if (this.#open) this.#listener.message(codecs ? throughBytes(message) : message);
  }

  /** The node ends the stream: behind what it sent. */
  #endsAtNode(fault: Failure | undefined): void {
    this.#closeAtNode();
    const reply = fault && refusal(fault, this.#ports.codecs);
    if (reply?.type === 'answer') throw new Error('a failure was answered');
    this.#carry(() => {
      this.#arrived.push(() => {
        this.#end(reply ?? { type: 'ended' });
      });
    });
  }

  #breaks(why: string): void {
    this.#carry(() => {
      this.#arrived.push(() => {
        this.#end({ type: 'silent', reached: this.#reached, why });
      });
    });
  }

  /** Carries something to the client, behind what is on its way. */
  #carry(arrive: () => void): void {
    this.#lane.push(arrive);
    if (this.#lane.length === 1) this.#carryFirst();
  }

  #carryFirst(): void {
    const { links, process } = this.#ports;
    links.pass(this.#node, () => {
      process.deliver(() => {
        this.#lane.shift()?.();
        if (this.#lane.length > 0) this.#carryFirst();
        this.#readOn();
      });
    });
  }
}

/** What a node makes of a request. */
function received(call: WatchCall, codecs: boolean): WatchCall | Failure {
  if (!codecs) return call;
  const parsed = parseWatch(WATCH_METHOD.requestDeserialize(WATCH_METHOD.requestSerialize(call)));
  return 'faults' in parsed ? failure('INVALID_REQUEST', parsed.faults.join('; ')) : parsed.ok;
}

function throughBytes(message: WatchMessage): ReadWatchMessage {
  return WATCH_METHOD.responseDeserialize(WATCH_METHOD.responseSerialize(message));
}
