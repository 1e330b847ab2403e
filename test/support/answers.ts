/** Answers and calls as they are when a test says nothing of queues, cool-downs and slots. */
import type { GetAnswer, LeaseView, NotGranted, NotGrantedReason } from '../../src/base/api.js';
import type { Domain } from '../../src/base/ids.js';

/** What every Acquire says: do not wait, no cool-down, one holder. */
export const PLAIN = { waitMs: 0, coolDownMs: 0, slots: 1 } as const;

/** A domain that nobody waits for. */
export function domainAnswer(domain: Domain, lease?: LeaseView, leftMs = 0): GetAnswer {
  return { type: 'get', domain, lease, leftMs, waiters: [], queueLength: 0, coolDownLeftMs: 0 };
}

/** Not granted, and nobody waits. */
export function notGranted(reason: NotGrantedReason = 'held', current?: LeaseView): NotGranted {
  return { type: 'notGranted', reason, current, queueLength: 0, coolDownLeftMs: 0 };
}
