/** A stream that another process opened, as the process at this end has it. */
import type { Hello } from '../../../src/replica/types.js';
import type { IncomingKind } from '../../../src/transport/incoming.js';
import type { DialOwner } from './dialling.js';
import type { Part } from './part.js';
import type { Stream } from './stream.js';

/** One stream that was opened to this process. */
export class Incoming {
  readonly kind: IncomingKind;
  readonly hello: Hello;
  readonly stream: Stream;
  readonly owner: DialOwner;
  /** Parts that have come since it was admitted. */
  frames = 0;
  /** Undefined until it is admitted. */
  handler: StreamHandler | undefined;
  over = false;

  constructor(stream: Stream, hello: Hello, owner: DialOwner) {
    this.kind = stream.kind;
    this.stream = stream;
    this.hello = hello;
    this.owner = owner;
  }

  /** Sends something back to who dialled. */
  back(task: () => void): void {
    this.stream.send('acceptor', task);
  }
}

/** What becomes of an admitted stream. */
export interface StreamHandler {
  frame(part: Part): void;
  /** `replaced`: the same process has opened a newer one of the same kind. Called once. */
  ended(replaced: boolean): void;
}
