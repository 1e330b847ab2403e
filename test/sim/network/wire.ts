/** The links between machines: how long things take, what is cut or clogged, and the pipes that carry them. */
import type { NodeId } from '../../../src/base/ids.js';
import { nextInt, nextUint32 } from '../../../src/base/random.js';
import type { Surroundings } from '../ports.js';
import { SPIKE_FACTOR } from './parameters.js';
import type { NetworkParameters } from './parameters.js';

/** See the head of the file. Links are directed. */
export class Wire {
  readonly surroundings: Surroundings;
  parameters: NetworkParameters;
  /** `from>to`, with a number of its own for every cut. */
  readonly #cuts = new Map<string, number>();
  #lastCut = 0;
  /** `from>to`: until when nothing arrives. */
  readonly #clogged = new Map<string, number>();
  /** Pipes with parcels that met a cut, in the order in which they first did. */
  readonly #waiting = new Set<Pipe>();

  constructor(surroundings: Surroundings, parameters: NetworkParameters) {
    this.surroundings = surroundings;
    this.parameters = parameters;
  }

  /** True with that chance, per mille. */
  chance(perMille: number): boolean {
    return perMille > 0 && nextInt(this.surroundings.random, 0, 999) < perMille;
  }

  /** Uniform between the two. */
  between(low: number, high: number): number {
    return low + (nextUint32(this.surroundings.random) / 2 ** 32) * (high - low);
  }

  /** Milliseconds that something which leaves now is under way. */
  delay(from: NodeId, to: NodeId): number {
    const [low, high] = this.parameters.latencyMs;
    const ms = this.between(low, high) * (this.chance(this.parameters.spikeChance) ? SPIKE_FACTOR : 1);
    if (this.#clogged.size === 0) return ms;
    const clogged = (this.#clogged.get(`${from}>${to}`) ?? 0) - this.surroundings.scheduler.now;
    return ms + Math.max(0, clogged);
  }

  /** Milliseconds after which one end notices that the other is silent. */
  patience(): number {
    const { keepAliveMs } = this.parameters;
    return this.between(keepAliveMs / 2, keepAliveMs);
  }

  isCut(from: NodeId, to: NodeId): boolean {
    return this.#cuts.size > 0 && this.#cuts.has(`${from}>${to}`);
  }

  /** Nothing arrives any more. Returns what tells whether that has been so ever since; undefined when it was cut already. */
  cut(from: NodeId, to: NodeId): (() => boolean) | undefined {
    const link = `${from}>${to}`;
    if (this.#cuts.has(link)) return undefined;
    const cut = ++this.#lastCut;
    this.#cuts.set(link, cut);
    return () => this.#cuts.get(link) === cut;
  }

  /** Ends a cut: what TCP repeats arrives now. */
  mend(from: NodeId, to: NodeId): void {
    if (!this.#cuts.delete(`${from}>${to}`)) return;
    for (const pipe of [...this.#waiting]) if (pipe.joins(from, to)) pipe.release();
  }

  /** Ends every cut and every clog. */
  mendAll(): void {
    this.#cuts.clear();
    this.#clogged.clear();
    for (const pipe of [...this.#waiting]) pipe.release();
  }

  /** What leaves within `ms` arrives after that only. */
  clog(from: NodeId, to: NodeId, ms: number): void {
    this.#clogged.set(`${from}>${to}`, this.surroundings.scheduler.now + ms);
  }

  /** A pipe has something that waits for a link; or nothing any more. */
  waits(pipe: Pipe, waiting: boolean): void {
    if (waiting) this.#waiting.add(pipe);
    else this.#waiting.delete(pipe);
  }
}

interface Parcel {
  readonly arrive: () => void;
  /** A connect: it needs an answer to get anywhere. */
  readonly connect: boolean;
}

/**
 * How a parcel travels: behind all before it; on its own (a datagram would), which counts as reordered when it comes
 * before an earlier one; past all before it, perhaps; or as the connect that opens the pipe.
 */
export type Manner = 'inOrder' | 'alone' | 'past' | 'connect';

/** One direction of a connection. What meets a cut waits, as TCP repeats it, until the cut ends or the pipe is closed. */
export class Pipe {
  /** How many parcels have left and not arrived. */
  underWay = 0;
  /** Called when something has arrived: there may be room. */
  drained: (() => void) | undefined;
  readonly #wire: Wire;
  readonly #from: NodeId;
  readonly #to: NodeId;
  /** Those in order, on their way. Whichever of their tasks comes first delivers the first: rounding changes no order. */
  readonly #queue: Parcel[] = [];
  #held: Parcel[] = [];
  #lastAt = 0;
  #closed = false;

  constructor(wire: Wire, from: NodeId, to: NodeId) {
    this.#wire = wire;
    this.#from = from;
    this.#to = to;
  }

  /** Calls `arrive` when a parcel that leaves now has arrived. */
  send(arrive: () => void, manner: Manner = 'inOrder'): void {
    if (this.#closed) return;
    const { scheduler, coverage } = this.#wire.surroundings;
    const parcel: Parcel = { arrive, connect: manner === 'connect' };
    const at = scheduler.now + this.#wire.delay(this.#from, this.#to);
    this.underWay++;
    if (manner === 'alone' || manner === 'past') {
      if (manner === 'alone') {
        if (at < this.#lastAt) coverage.count('message reordered');
        this.#lastAt = Math.max(at, this.#lastAt);
      }
      scheduler.after(at - scheduler.now, () => {
        this.#arrived(parcel);
      });
      return;
    }
    this.#lastAt = Math.max(at, this.#lastAt);
    this.#queue.push(parcel);
    scheduler.after(this.#lastAt - scheduler.now, () => {
      const first = this.#queue.shift();
      if (first !== undefined) this.#arrived(first);
    });
  }

  /** True when it joins these two machines, in either direction. */
  joins(left: NodeId, right: NodeId): boolean {
    return (this.#from === left && this.#to === right) || (this.#from === right && this.#to === left);
  }

  /** What met a cut leaves once more. */
  release(): void {
    this.#wire.waits(this, false);
    const held = this.#held;
    this.#held = [];
    for (const { arrive, connect } of held) {
      this.underWay--;
      this.send(arrive, connect ? 'connect' : 'inOrder');
    }
  }

  /** Nothing arrives any more. */
  close(): void {
    this.#closed = true;
    this.#held = [];
    this.#queue.length = 0;
    this.#wire.waits(this, false);
  }

  #arrived(parcel: Parcel): void {
    if (this.#closed) return;
    // The end of a cut releases all that waits: nothing comes past it here.
    if (this.#isBlocked(parcel)) {
      this.#held.push(parcel);
      this.#wire.waits(this, true);
      return;
    }
    this.underWay--;
    parcel.arrive();
    this.drained?.();
  }

  #isBlocked({ connect }: Parcel): boolean {
    return this.#wire.isCut(this.#from, this.#to) || (connect && this.#wire.isCut(this.#to, this.#from));
  }
}
