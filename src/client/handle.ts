/**
 * The life of one lease in the hands of its holder: `held → jeopardy → lost | released`, one transition function.
 * Pure: it reads no clock, the moments are given. The token is bound to the handle for ever; a lost lease is never
 * replaced by a new one behind the holder's back.
 */
import type { EndedView } from '../base/api.js';
import { disagreementMs } from './clock.js';
import type { Moment } from './clock.js';
import { leftMs } from './deadline.js';

/** Why a lease was lost. */
export type LossCause =
  /** The safe deadline passed without a confirmed renewal. */
  | { readonly type: 'deadline' }
  /** The server says that the lease is over. */
  | { readonly type: 'ended'; readonly ended: EndedView };

/** Where a lease stands. */
export type HandleState =
  /** Confirmed by a call that was sent at `sentAt`. */
  | { readonly type: 'held'; readonly sentAt: Moment }
  /**
   * The clocks disagree, or the process stood still, by more than a third of the TTL: the deadline has not passed, but
   * it is not to be trusted until a call sent after `since` has been answered.
   */
  | { readonly type: 'jeopardy'; readonly sentAt: Moment; readonly since: Moment }
  | { readonly type: 'lost'; readonly cause: LossCause }
  | { readonly type: 'released' };

/** What happens to a lease. */
export type HandleInput =
  /** Somebody looked at the clocks; `lateMs` is by how much the renewal loop is behind its plan, 0 when it is not. */
  | { readonly type: 'looked'; readonly now: Moment; readonly lateMs: number }
  /** A renewal sent at `sentAt` was answered `live`. */
  | { readonly type: 'renewed'; readonly sentAt: Moment; readonly now: Moment }
  /** A call was answered `ended`. */
  | { readonly type: 'ended'; readonly ended: EndedView }
  /** The holder gave it back. */
  | { readonly type: 'released' };

/** The state after `input`; the same object when nothing changed. `lost` and `released` are final. */
export function nextState(state: HandleState, ttlMs: number, input: HandleInput): HandleState {
  if (state.type === 'lost' || state.type === 'released') return state;
  switch (input.type) {
    case 'looked':
      return look(state, ttlMs, input.now, input.lateMs);
    case 'renewed': {
      // An answer that comes after the deadline does not count, whatever it says.
      const looked = look(state, ttlMs, input.now, 0);
      if (looked.type !== 'held' && looked.type !== 'jeopardy') return looked;
      return renew(looked, ttlMs, input.sentAt, input.now);
    }
    case 'ended':
      return { type: 'lost', cause: { type: 'ended', ended: input.ended } };
    case 'released':
      return { type: 'released' };
  }
}

/** A state in which the lease may still be the holder's. */
type Alive = Extract<HandleState, { readonly sentAt: Moment }>;

function look(state: Alive, ttlMs: number, now: Moment, lateMs: number): HandleState {
  if (leftMs(state.sentAt, ttlMs, now) <= 0) return { type: 'lost', cause: { type: 'deadline' } };
  if (state.type === 'jeopardy') return state;
  const limitMs = ttlMs / 3;
  // What stood still before the confirming call was sent does not concern this lease.
  const stalledMs = Math.min(lateMs, now.monotonicMs - state.sentAt.monotonicMs);
  if (stalledMs > limitMs || disagreementMs(state.sentAt, now) > limitMs) {
    return { type: 'jeopardy', sentAt: state.sentAt, since: now };
  }
  return state;
}

function renew(state: Alive, ttlMs: number, sentAt: Moment, now: Moment): HandleState {
  // Two renewals may be under way at once; the one sent last carries furthest.
  const later = sentAt.monotonicMs > state.sentAt.monotonicMs ? sentAt : state.sentAt;
  if (state.type === 'held') return look({ type: 'held', sentAt: later }, ttlMs, now, 0);
  if (sentAt.monotonicMs >= state.since.monotonicMs) return look({ type: 'held', sentAt: later }, ttlMs, now, 0);
  return { ...state, sentAt: later };
}
