/** EndWait (F7): ends waits, and what was granted to them since it was proposed. */
import { describe, expect, it } from 'vitest';
import { describeEnd, findRequest, leaseOf, liveCount, queueOf } from '../../src/lease/lookup.js';
import type { State } from '../../src/lease/state.js';
import type { Lease } from '../../src/lease/types.js';
import {
  acquire,
  domain,
  emptyState,
  endWait,
  granted,
  id,
  next,
  NOTHING,
  queued,
  release,
  resultOf,
  rev,
  withdraw,
} from './kit.js';

/** Requests 2, 3 and so on wait for `a`, which request 1 holds. */
function waiting(count: number): { readonly state: State; readonly lease: Lease } {
  const state = emptyState();
  const lease = granted(state, 'a', 1);
  for (let n = 0; n < count; n++) queued(state, 'a', 2 + n);
  return { state, lease };
}

describe('the end of a wait', () => {
  it('takes the waiter out of its queue, and its request is over', () => {
    const { state } = waiting(2);
    const [waiter, behind] = queueOf(state, domain('a'));
    expect(next(state, endWait([2]))).toEqual({ result: { type: 'done' }, ...NOTHING, left: [waiter] });
    expect(queueOf(state, domain('a'))).toEqual([behind]);
    expect(resultOf(state, acquire(state, 'a', 2, { waitMs: 60_000 }))).toEqual({
      type: 'ended',
      ended: { lease: undefined, reason: 'left_queue', by: '', note: '', currentToken: rev(1) },
    });
  });

  it('takes back what an entry in between granted, and hands it on', () => {
    const { state, lease } = waiting(2);
    next(state, release(lease));
    const between = leaseOf(state, domain('a'));
    expect(between?.requestId).toBe(id(2));
    const applied = next(state, endWait([2]));
    expect(applied).toMatchObject({
      ended: [{ lease: between, reason: 'left_queue' }],
      granted: [{ token: rev(5), requestId: id(3) }],
      left: [{ requestId: id(3) }],
    });
    expect(leaseOf(state, domain('a'))).toEqual(applied.granted[0]);
    if (between !== undefined) expect(describeEnd(state, between)).toMatchObject({ reason: 'left_queue' });
    expect(resultOf(state, acquire(state, 'a', 2))).toMatchObject({
      type: 'ended',
      ended: { lease: { domain: 'a', token: rev(4) }, reason: 'left_queue', currentToken: rev(5) },
    });
  });

  it('passes over the detached when it hands on', () => {
    const { state, lease } = waiting(3);
    next(state, release(lease));
    next(state, endWait([2], 1, [3]));
    expect(leaseOf(state, domain('a'))?.requestId).toBe(id(4));
  });

  it('ends several of one queue, also when the first of them was granted in between', () => {
    const { state, lease } = waiting(2);
    next(state, release(lease));
    // Request 3, next in the queue, must not be granted by the entry that ends its own wait.
    const applied = next(state, endWait([2, 3]));
    expect(applied.granted).toEqual([]);
    expect(applied.ended).toMatchObject([{ lease: { requestId: id(2) } }]);
    expect(applied.left).toMatchObject([{ requestId: id(3) }]);
    for (const request of [2, 3]) {
      expect(findRequest(state, id(request))).toMatchObject({ type: 'finished', request: { reason: 'left_queue' } });
    }
    expect(liveCount(state)).toBe(0);
  });

  it.each([
    [[2, 3], id(4)],
    [[3, 2], id(4)],
    [[2, 4], id(3)],
    [[4, 2, 4], id(3)],
  ])('of %j at once hands on to the first who stays', (requests, holder) => {
    const { state, lease } = waiting(3);
    next(state, release(lease));
    next(state, endWait(requests));
    expect(leaseOf(state, domain('a'))?.requestId).toBe(holder);
    expect(queueOf(state, domain('a'))).toEqual([]);
  });

  it('of another term does nothing at all', () => {
    const { state, lease } = waiting(1);
    expect(next(state, endWait([2], 1), 2)).toEqual({ result: { type: 'done' }, ...NOTHING });
    next(state, release(lease));
    expect(next(state, endWait([2], 3), 2)).toEqual({ result: { type: 'done' }, ...NOTHING });
    expect(leaseOf(state, domain('a'))?.requestId).toBe(id(2));
  });

  it('of an id that is over or unknown does nothing, and remembers nothing', () => {
    const { state } = waiting(1);
    next(state, withdraw('a', 2));
    const before = findRequest(state, id(2));
    expect(next(state, endWait([2, 77, 77]))).toEqual({ result: { type: 'done' }, ...NOTHING });
    expect(findRequest(state, id(2))).toEqual(before);
    expect(findRequest(state, id(77))).toBeUndefined();
  });

  it('grants nothing where the domain stays free with a queue', () => {
    const { state, lease } = waiting(2);
    next(state, release(lease, '', [2, 3]));
    expect(next(state, endWait([2])).granted).toEqual([]);
    expect(leaseOf(state, domain('a'))).toBeUndefined();
  });
});
