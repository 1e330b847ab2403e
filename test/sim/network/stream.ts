/** One connection between two processes, with one stream on it, as both its ends see it. */
import type { NodeId } from '../../../src/base/ids.js';
import type { IncomingKind } from '../../../src/transport/incoming.js';
import type { SimProcess } from './process.js';
import { Pipe } from './wire.js';
import type { Manner, Wire } from './wire.js';

/** The two ends of a stream. */
export type Side = 'dialer' | 'acceptor';

/** What an end needs. */
export interface End {
  readonly process: SimProcess;
  /** The other end has gone, or seems to. Called at most once, by the process, and never after this end closed. */
  readonly lost: (reason: string) => void;
}

/** See the head of the file. */
export class Stream {
  readonly kind: IncomingKind;
  readonly #wire: Wire;
  readonly #over: (stream: Stream) => void;
  readonly #nodes: Readonly<Record<Side, NodeId>>;
  /** From each side to the other. */
  readonly #pipes: Readonly<Record<Side, Pipe>>;
  /** The ends that are open. A process that lost its power keeps its end until the other one has noticed. */
  readonly #ends: Record<Side, End | undefined>;

  /** `over` is called once both ends are closed. */
  constructor(wire: Wire, kind: IncomingKind, dialer: End, acceptor: NodeId, over: (stream: Stream) => void) {
    this.kind = kind;
    this.#wire = wire;
    this.#over = over;
    this.#nodes = { dialer: dialer.process.node, acceptor };
    this.#pipes = {
      dialer: new Pipe(wire, dialer.process.node, acceptor),
      acceptor: new Pipe(wire, acceptor, dialer.process.node),
    };
    this.#ends = { dialer, acceptor: undefined };
  }

  /** Whether this end has not closed and not been told of the other's end. */
  isOpen(side: Side): boolean {
    return this.#ends[side] !== undefined;
  }

  /** How many parcels from this side have not arrived. */
  underWay(side: Side): number {
    return this.#pipes[side].underWay;
  }

  /** Calls `drained` whenever a parcel from this side has arrived. */
  whenDrained(side: Side, drained: () => void): void {
    this.#pipes[side].drained = drained;
  }

  /** True when it joins these two machines. */
  joins(left: NodeId, right: NodeId): boolean {
    return this.#pipes.dialer.joins(left, right);
  }

  /** The side at which this process is, if it is at one. */
  sideOf(process: SimProcess): Side | undefined {
    if (this.#ends.dialer?.process === process) return 'dialer';
    return this.#ends.acceptor?.process === process ? 'acceptor' : undefined;
  }

  /** The side on this machine whose process lost its power. */
  deadSide(node: NodeId): Side | undefined {
    for (const side of ['dialer', 'acceptor'] as const)
      if (this.#nodes[side] === node && this.#ends[side]?.process.alive === false) return side;
    return undefined;
  }

  /** True when one of its ends is on this machine. */
  touches(node: NodeId): boolean {
    return this.#nodes.dialer === node || this.#nodes.acceptor === node;
  }

  /** The connect: `arrived` is called at the other machine, before any process there knows of it. */
  connect(arrived: () => void): void {
    this.#pipes.dialer.send(arrived, 'connect');
  }

  /** A process takes the connection. */
  accept(end: End): void {
    this.#ends.acceptor = end;
  }

  /** The other machine refuses the connection. */
  refuse(reason: string): void {
    this.#pipes.acceptor.send(() => {
      this.#lose('dialer', reason);
    });
  }

  /** Runs `task` in the process at the other end when it has arrived, if that end is still open then. */
  send(from: Side, task: () => void, manner: Manner = 'inOrder'): void {
    const to = otherSide(from);
    this.#pipes[from].send(() => {
      this.#inside(to, task);
    }, manner);
  }

  /** This end closes, and the other is told on the way. `reset`: what is under way may or may not arrive before. */
  close(side: Side, how: 'flushed' | 'reset', reason: string): void {
    if (this.#ends[side] === undefined) return;
    this.#ends[side] = undefined;
    this.tell(side, how, reason);
    this.#settle();
  }

  /** Tells the end opposite of `side` that the stream is over. */
  tell(side: Side, how: 'flushed' | 'reset', reason: string): void {
    const other = otherSide(side);
    if (this.#ends[other] === undefined) return;
    const lose = (): void => {
      this.#lose(other, reason);
    };
    // A reset that overtakes what is under way is what loses it.
    this.#pipes[side].send(lose, how === 'reset' && this.#wire.between(0, 1) < 0.5 ? 'past' : 'inOrder');
  }

  /** Somebody in between ends the connection: both ends are told. */
  breakOff(reason: string): void {
    this.tell('dialer', 'reset', reason);
    this.tell('acceptor', 'reset', reason);
  }

  /** Likewise at once, and what is under way is lost. */
  sever(reason: string): void {
    this.#lose('dialer', reason);
    this.#lose('acceptor', reason);
  }

  /** This end has heard nothing for too long: it closes by itself. */
  giveUp(side: Side): void {
    this.#inside(side, (end) => {
      this.#wire.surroundings.coverage.count('stream ended by keep-alive');
      this.#ends[side] = undefined;
      this.tell(side, 'reset', 'the other end gave up');
      end.lost('keep-alive');
      this.#settle();
    });
  }

  #lose(side: Side, reason: string): void {
    this.#inside(side, (end) => {
      this.#ends[side] = undefined;
      end.lost(reason);
      this.#settle();
    });
  }

  /** Runs `task` in the process at this end, if the end is still open when the process runs. */
  #inside(side: Side, task: (end: End) => void): void {
    this.#ends[side]?.process.run(() => {
      const end = this.#ends[side];
      if (end !== undefined) task(end);
    });
  }

  #settle(): void {
    const { dialer, acceptor } = this.#ends;
    if (dialer?.process.alive === true || acceptor?.process.alive === true) return;
    this.#pipes.dialer.close();
    this.#pipes.acceptor.close();
    this.#over(this);
  }
}

/** The side opposite. */
export function otherSide(side: Side): Side {
  return side === 'dialer' ? 'acceptor' : 'dialer';
}
