/**
 * The network between the members of a simulated cluster. It tells every process exactly what the real transport would
 * (`src/transport`): each process opens three lanes to every other member of its history, and whoever is at their other
 * end is told of hellos, messages and endings. What the network does to them is its parameters' and its faults' matter.
 */
import type { BootId, NodeId } from '../../../src/base/ids.js';
import type { PeerPort } from '../../../src/replica/ports.js';
import type { FormRequest, FormResponse } from '../../../src/replica/types.js';
import type { IncomingKind } from '../../../src/transport/incoming.js';
import type { Endpoint, FormingEndpoint, Surroundings } from '../ports.js';
import { createCarriage } from './carriage.js';
import type { Carriage } from './carriage.js';
import type { Dialled, DialOwner, Knock, Network } from './dialling.js';
import { ask } from './forming.js';
import { Noise } from './noise.js';
import type { NetworkParameters } from './parameters.js';
import type { Part } from './part.js';
import { SimPeers } from './peers.js';
import { SimProcess } from './process.js';
import { Stream } from './stream.js';
import { Pipe, Wire } from './wire.js';

/** A process at a member's peer address. */
interface Resident {
  readonly boot: BootId;
  /** Answers those that form, if it does. */
  forming: FormingEndpoint | undefined;
  /** Undefined before it has a history. */
  peers: SimPeers | undefined;
}

/** What is at a member's peer address. */
interface Host {
  /** The oldest process answers; another one is of a copied directory, which dials but cannot be reached. */
  readonly residents: Resident[];
  /** The machine has no power: it says nothing at all. */
  dark: boolean;
  /** Whatever is there, connects to it are refused. */
  refusing: boolean;
}

/** How a process ended: `stopped` sends what it was handed first; `closed` by its kernel; `power` says nothing. */
export type Ending = 'stopped' | 'closed' | 'power';

/** See the head of the file. */
export class SimNetwork implements Network {
  readonly wire: Wire;
  readonly carriage: Carriage;
  readonly #noise: Noise;
  readonly #hosts = new Map<NodeId, Host>();
  readonly #streams = new Set<Stream>();

  constructor(surroundings: Surroundings, parameters: NetworkParameters) {
    this.wire = new Wire(surroundings, parameters);
    this.carriage = createCarriage(parameters.codecs);
    this.#noise = new Noise(this.wire);
  }

  /** The peer listener of a process stands, before {@link attach}: it answers members that form, for as long as it lives. */
  listen(node: NodeId, boot: BootId, forming: FormingEndpoint): void {
    this.#resident(node, boot).forming = forming;
  }

  /** A process begins to speak with the other members of its history. Nothing is dispatched before this returns. */
  attach(endpoint: Endpoint): PeerPort {
    const process = new SimProcess(this.wire.surroundings, endpoint);
    const resident = this.#resident(process.node, endpoint.boot);
    resident.peers = new SimPeers(this, process);
    resident.peers.start();
    return resident.peers;
  }

  /** A process is gone, whether it only listened or was attached too. Nothing happens when it was neither. */
  detach(node: NodeId, boot: BootId, how: Ending): void {
    const host = this.#host(node);
    const at = host.residents.findIndex((each) => each.boot === boot);
    if (at < 0) return;
    const process = host.residents.splice(at, 1)[0]?.peers?.process;
    if (how === 'power' && host.residents.length === 0) host.dark = true;
    if (process === undefined) return;
    process.die();
    for (const stream of [...this.#streams]) {
      const side = stream.sideOf(process);
      if (side === undefined) continue;
      if (how === 'power') this.#giveUp(stream, () => true);
      else stream.close(side, how === 'stopped' ? 'flushed' : 'reset', 'the process ended');
    }
  }

  /** A process stands still (stopped, or its machine sleeps): the kernel still accepts connections, and nobody answers. */
  pause(node: NodeId, boot: BootId): void {
    const process = this.#processOf(node, boot);
    if (process === undefined) return;
    const lasts = process.pause();
    for (const stream of this.#streams) if (stream.sideOf(process) !== undefined) this.#giveUp(stream, lasts);
  }

  /** It goes on, and notices what came meanwhile. */
  resume(node: NodeId, boot: BootId): void {
    this.#processOf(node, boot)?.resume();
  }

  /** Asks a member that forms, or has formed; `done` gets undefined when it could not be asked. The result gives the question up. */
  ask(
    from: NodeId,
    to: NodeId,
    request: FormRequest,
    timeoutMs: number,
    done: (response: FormResponse | undefined) => void,
  ): () => void {
    const target = this.#host(to);
    return ask(this, { from, to, request, timeoutMs, done, forming: () => target.residents[0]?.forming });
  }

  /** Nothing gets from one machine to the other; its streams stay open until both ends have waited long enough. */
  cut(from: NodeId, to: NodeId): void {
    const lasts = this.wire.cut(from, to);
    if (lasts === undefined) return;
    this.wire.surroundings.trace(`cut ${from}>${to}`);
    for (const stream of this.#streams) if (stream.joins(from, to)) this.#giveUp(stream, lasts);
  }

  /** Ends a cut. */
  mend(from: NodeId, to: NodeId): void {
    if (!this.wire.isCut(from, to)) return;
    this.wire.surroundings.trace(`mend ${from}>${to}`);
    this.wire.mend(from, to);
  }

  /** For so many milliseconds nothing that leaves arrives; then all of it does. */
  clog(from: NodeId, to: NodeId, ms: number): void {
    this.#count('clog');
    this.wire.surroundings.trace(`clog ${from}>${to} ${ms.toFixed(0)}`);
    this.wire.clog(from, to, ms);
  }

  /** While `on`, connects to this machine are refused though its process runs; the streams that there are end. */
  refuse(node: NodeId, on: boolean): void {
    const host = this.#host(node);
    if (host.refusing === on) return;
    host.refusing = on;
    this.wire.surroundings.trace(`${on ? 'refuse' : 'accept'} ${node}`);
    if (!on) return;
    this.#count('refused but alive');
    for (const stream of this.#streams) if (stream.touches(node)) stream.breakOff('reset on the way');
  }

  /** Somebody in between ends all connections of this machine: both ends are told at once, what is under way is lost. */
  sever(node: NodeId): void {
    this.#count('connections severed');
    this.wire.surroundings.trace(`sever ${node}`);
    for (const stream of [...this.#streams]) if (stream.touches(node)) stream.sever('severed on the way');
  }

  /** Ends every cut, clog and refusal. */
  heal(): void {
    this.wire.surroundings.trace('heal');
    for (const host of this.#hosts.values()) host.refusing = false;
    this.wire.mendAll();
  }

  /** From now on core messages arrive once, in order and without spikes. */
  calm(): void {
    this.wire.parameters = {
      ...this.wire.parameters,
      spikeChance: 0,
      loss: 0,
      duplicate: 0,
      replay: 0,
      chunkTwice: 0,
      reorder: false,
    };
  }

  dial(process: SimProcess, to: NodeId, kind: IncomingKind, owner: DialOwner): Dialled {
    const lost = (reason: string): void => {
      owner.lost(reason);
    };
    const stream = new Stream(this.wire, kind, { process, lost }, to, (over) => this.#streams.delete(over));
    this.#streams.add(stream);
    const hello = this.carriage.hello(process.hello);
    let acceptor: SimPeers | undefined;
    stream.connect(() => {
      const host = this.#host(to);
      if (host.dark) return;
      acceptor = host.residents[0]?.peers;
      if (isRefusing(host) || acceptor === undefined) {
        stream.refuse(isRefusing(host) ? 'connect refused' : 'not formed yet');
        return;
      }
      const { incoming, process: target } = acceptor;
      stream.accept({ process: target, lost: () => undefined });
      target.run(() => {
        incoming.greeted(stream, hello, owner);
      });
    });
    const take = (part: Part): void => {
      acceptor?.incoming.take(stream, part);
    };
    return {
      stream,
      send: (part) => {
        this.#noise.send(stream, process.hello.incarnation, part, take);
      },
    };
  }

  knock(from: NodeId, to: NodeId, answered: (answer: Knock) => void): void {
    const there = new Pipe(this.wire, from, to);
    const back = new Pipe(this.wire, to, from);
    there.send(() => {
      const host = this.#host(to);
      if (host.dark) return;
      const answer = isRefusing(host) ? 'refused' : 'accepted';
      back.send(() => {
        answered(answer);
      });
    }, 'connect');
  }

  raise(error: Error): void {
    this.wire.surroundings.scheduler.after(0, () => {
      throw error;
    });
  }

  #host(node: NodeId): Host {
    let host = this.#hosts.get(node);
    if (host === undefined) {
      host = { residents: [], dark: false, refusing: false };
      this.#hosts.set(node, host);
    }
    return host;
  }

  /** The process of that boot, which is new when it is not known: then its machine has power. */
  #resident(node: NodeId, boot: BootId): Resident {
    const host = this.#host(node);
    let resident = host.residents.find((each) => each.boot === boot);
    if (resident !== undefined) return resident;
    resident = { boot, forming: undefined, peers: undefined };
    if (host.residents.length > 0) this.#count('two processes of one member');
    host.residents.push(resident);
    if (host.dark) this.#power(node, host);
    return resident;
  }

  #processOf(node: NodeId, boot: BootId): SimProcess | undefined {
    return this.#host(node).residents.find((each) => each.boot === boot)?.peers?.process;
  }

  /** Each end of `stream` closes when it has heard nothing for too long, unless the silence has ended before. */
  #giveUp(stream: Stream, lasts: () => boolean): void {
    for (const side of ['dialer', 'acceptor'] as const) {
      this.wire.surroundings.scheduler.after(this.wire.patience(), () => {
        if (lasts()) stream.giveUp(side);
      });
    }
  }

  /** The machine is up: what others still send to the process that it had meets a reset. */
  #power(node: NodeId, host: Host): void {
    host.dark = false;
    for (const stream of [...this.#streams]) {
      const side = stream.deadSide(node);
      if (side !== undefined) stream.tell(side, 'reset', 'the machine was restarted');
    }
  }

  #count(name: string): void {
    this.wire.surroundings.coverage.count(name);
  }
}

/** Nobody listens there, or somebody in between says so. */
function isRefusing(host: Host): boolean {
  return host.refusing || host.residents.length === 0;
}
