/** The waiters that a leader knows, one by one: who calls for them, and when each has to be looked at next. */
import { assert } from '../base/assert.js';
import type { Waiter } from '../lease/types.js';
import { dropDue, setDue } from './due.js';
import type { Attachment, Context, Leadership, Served } from './state.js';

/** A new waiter is known from now on. */
export function attach(context: Context, leadership: Leadership, waiter: Waiter): void {
  begin(context, leadership, waiter, true, context.time.nowMs);
}

/** The waiter as this leader sees it. One whom it found, and who had not its turn, gets it now: it counts from its start. */
export function attachmentOf(context: Context, leadership: Leadership, waiter: Waiter): Attachment {
  const { attachments, found } = leadership.waits;
  const known = attachments.get(waiter.requestId);
  if (known !== undefined) return known;
  assert(found !== undefined, `waiter ${waiter.requestId} is not known to the leader`);
  return begin(context, leadership, waiter, false, found.from);
}

function begin(context: Context, leadership: Leadership, waiter: Waiter, seen: boolean, from: number): Attachment {
  const { requestId, waitMs } = waiter;
  const { attachments } = leadership.waits;
  assert(!attachments.has(requestId), `waiter ${requestId} is known twice`);
  const attachment: Attachment = {
    waiter,
    calls: new Set(),
    silentSince: from,
    seen,
    waitUntil: from + waitMs,
    offered: undefined,
    ending: undefined,
    dueAt: Infinity,
  };
  attachments.set(requestId, attachment);
  lookAgain(context, leadership, attachment);
  return attachment;
}

/** It waits no more. */
export function forget({ waits }: Leadership, attachment: Attachment): void {
  waits.attachments.delete(attachment.waiter.requestId);
  dropDue(waits.due, attachment);
}

/** A call has ended, however: it is held no more. */
export function letGo(context: Context, leadership: Leadership, served: Served): void {
  if (served.call.type !== 'acquire') return;
  const attachment = leadership.waits.attachments.get(served.call.requestId);
  if (attachment?.calls.delete(served) !== true) return;
  attachment.silentSince = context.time.nowMs;
  attachment.seen = true;
  if (attachment.offered === served) attachment.offered = undefined;
  lookAgain(context, leadership, attachment);
}

/** Nobody would hear of a grant to it: its last call has ended, or its EndWait is open. */
export function isDetached({ time, options }: Context, { calls, seen, silentSince, ending }: Attachment): boolean {
  if (ending !== undefined) return true;
  return calls.size === 0 && (seen || time.nowMs - silentSince >= options.waiterGraceMs);
}

/** Sets when this leader has to look at a waiter next: after each change of it. */
export function lookAgain({ options }: Context, { waits }: Leadership, attachment: Attachment): void {
  const { calls, seen, silentSince, waitUntil, offered, ending } = attachment;
  // Nothing is answered for it before the outcome.
  if (ending !== undefined) {
    dropDue(waits.due, attachment);
    return;
  }
  let at = Infinity;
  for (const served of calls) if (served !== offered) at = Math.min(at, served.holdUntil);
  if (offered === undefined) {
    if (calls.size > 0 || seen) at = Math.min(at, waitUntil);
    if (calls.size === 0) at = Math.min(at, silentSince + options.waiterGraceMs);
  }
  setDue(waits.due, attachment, at);
}
