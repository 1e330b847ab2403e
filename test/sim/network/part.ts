/** What streams carry from the end that dialled. */
import type { Message } from '../../../src/raft/types.js';
import type { SnapshotChunk } from '../../../src/replica/types.js';
import type { ForwardedCall } from '../../../src/wire/forward.js';
import type { Carried } from './carriage.js';

/** A core message. */
export interface MessagePart {
  readonly type: 'message';
  readonly carried: Carried<Message>;
  /** As it was sent, for the trace. */
  readonly sent: Message;
}

/** One part of a frame, on its way to the other end's handler. `nothing` answers a question for a sign of life. */
export type Part =
  | MessagePart
  | { readonly type: 'call'; readonly carried: Carried<ForwardedCall> }
  | { readonly type: 'cancel'; readonly carried: Carried<number> }
  | { readonly type: 'chunk'; readonly carried: Carried<SnapshotChunk> }
  | { readonly type: 'nothing' };

/** A core message on its way. */
export function messagePart(sent: Message, carried: Carried<Message>): MessagePart {
  return { type: 'message', carried, sent };
}
