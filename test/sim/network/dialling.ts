/** Opening a stream: what a dialler gets, and what it must listen to. */
import type { NodeId } from '../../../src/base/ids.js';
import type { Hello } from '../../../src/replica/types.js';
import type { IncomingKind } from '../../../src/transport/incoming.js';
import type { ForwardedResult } from '../../../src/wire/forward.js';
import type { Carriage, Carried } from './carriage.js';
import type { Part } from './part.js';
import type { SimProcess } from './process.js';
import type { Stream } from './stream.js';
import type { Wire } from './wire.js';

/** What reaches the end that dialled. */
export interface DialOwner {
  /** The other end admitted the stream and says who it is. */
  answered(hello: Carried<Hello>): void;
  /** Over a forward stream. */
  result?(result: Carried<ForwardedResult>): void;
  /** Over a snapshot stream: that request is done. */
  done?(request: Carried<number>): void;
  /** Over a snapshot stream: the other end has read one more chunk. */
  read?(): void;
  /** The other end asks whether this process is alive. */
  lifeAsked?(): void;
  /** The stream is over, or was never admitted. */
  lost(reason: string): void;
}

/** A stream that was dialled. */
export interface Dialled {
  readonly stream: Stream;
  /** Sends a part, under the chances that core messages have. */
  send(part: Part): void;
}

/** How a connect ended, as the one who connects sees it; a machine that says nothing gives none. */
export type Knock = 'refused' | 'accepted';

/** What the parts of the network need of it. */
export interface Network {
  readonly wire: Wire;
  readonly carriage: Carriage;
  /** Opens a stream. `owner` is never called before this returns. */
  dial(process: SimProcess, to: NodeId, kind: IncomingKind, owner: DialOwner): Dialled;
  /** Connects and closes again. `answered` is never called when nothing comes back. */
  knock(from: NodeId, to: NodeId, answered: (answer: Knock) => void): void;
  /** A defect that came up in a promise: ends the run. */
  raise(error: Error): void;
}
