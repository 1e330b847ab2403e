/** Histories made by hand: what may be told, and what must be refused and with which code. */
import { describe, expect, it } from 'vitest';
import { judge } from './judge.js';
import {
  acquireEnded,
  ended,
  forced,
  got,
  granted,
  held,
  lease,
  recovering,
  refused,
  released,
  renewed,
  rev,
  SAFE_MS,
  unanswered,
  verified,
  withdrawn,
} from './kit.js';
import type { Operation } from './operations.js';

const good: Record<string, readonly Operation[]> = {
  nothing: [],
  'a grant, renewals and a release': [
    got([0, 1], undefined, 4),
    granted([2, 4], 'a', 5),
    renewed([500, 501], 5, 5),
    verified([900, 901], 5, 5),
    got([902, 903], lease(5, 'a'), 5),
    released([910, 911], 5, 6),
    renewed([920, 921], 5, 6, ended(5, 'released')),
    granted([930, 931], 'b', 7),
  ],
  'two acquires at once: one is granted, either order of their calls': [
    held([0, 10], 'a', 5, 'b', 6),
    granted([1, 9], 'b', 5),
  ],
  'a repeated acquire, live and over': [
    granted([0, 1], 'a', 5),
    granted([10, 11], 'a', 5, 6),
    released([20, 21], 5, 7),
    acquireEnded([30, 31], 'a', ended(5, 'released'), 8),
  ],
  'a release, told twice': [granted([0, 1], 'a', 5), released([2, 3], 5, 6), released([4, 5], 5, 7)],
  'an acquire of unknown outcome that took effect late': [
    unanswered.acquire(0, 'a'),
    got([100, 101], undefined, 4),
    got([200, 201], lease(5, 'a'), 5),
    held([300, 301], 'b', 5, 'a', 6),
  ],
  'an acquire of unknown outcome that never took effect': [unanswered.acquire(0, 'a'), granted([500, 501], 'b', 5)],
  'a lease of nobody who knows may expire at once': [
    unanswered.acquire(0, 'a'),
    got([1, 2], lease(5, 'a'), 5),
    got([3, 4], undefined, 6),
  ],
  'expiry between two answers, at the safe deadline': [
    granted([0, 1], 'a', 5),
    renewed([100, 101], 5, 5),
    got([102, 100 + SAFE_MS], undefined, 6),
    renewed([2_000, 2_001], 5, 6, ended(5, 'expired')),
  ],
  'an expiry that is told to an acquire which began before it': [
    granted([0, 1], 'a', 5),
    granted([500, SAFE_MS], 'b', 7),
  ],
  'a release of unknown outcome ended it': [
    granted([0, 1], 'a', 5),
    unanswered.release(10, 5),
    got([20, 21], lease(5, 'a'), 5),
    granted([30, 31], 'b', 7),
  ],
  'an operator ended it': [
    granted([0, 1], 'a', 5),
    forced([10, 11], 5, 6),
    forced([12, 13], 5, 7, 0),
    renewed([20, 21], 5, 7, ended(5, 'force_released')),
  ],
  'a force-release of unknown outcome ended it': [
    granted([0, 1], 'a', 5),
    unanswered.forceRelease(2, 5),
    renewed([20, 21], 5, 7, ended(5, 'force_released')),
  ],
  'a withdrawal before the grant': [
    held([0, 1], 'a', 5, 'b', 6),
    granted([0, 1], 'b', 5),
    withdrawn([2, 3], 'a', 7),
    acquireEnded([4, 5], 'a', ended(undefined, 'withdrawn', 5), 8),
  ],
  'a withdrawal of a lease': [
    unanswered.acquire(0, 'a'),
    held([1, 2], 'b', 5, 'a', 6),
    withdrawn([3, 4], 'a', 7),
    granted([5, 6], 'b', 8),
    acquireEnded([7, 8], 'a', ended(5, 'withdrawn', 8), 9),
  ],
  'a withdrawal of unknown outcome that ended it': [
    granted([0, 1], 'a', 5),
    unanswered.withdraw(2, 'a'),
    granted([3, 4], 'b', 6),
  ],
  'a call that was granted and then told how that ended': [
    acquireEnded([0, 2_000], 'a', ended(5, 'force_released', 7), 7),
    held([10, 11], 'b', 5, 'a', 5),
    forced([20, 21], 5, 6),
    granted([30, 31], 'b', 7),
  ],
  'the hold of a restored history': [recovering([0, 1], 'a', 4), granted([10, 11], 'a', 5)],
  'a lease that never was': [
    verified([0, 1], 99, 4, ended(99, 'never_granted')),
    renewed([2, 3], 1, 4, ended(1, 'earlier_history')),
    granted([4, 5], 'a', 5),
    released([6, 7], 3, 5, ended(3, 'unspecified', 5)),
  ],
  'a lease whose end is forgotten': [
    granted([0, 1], 'a', 5),
    released([2, 3], 5, 9, ended(5, 'unspecified', 8)),
    granted([2, 3], 'b', 8),
    acquireEnded([4, 5], 'a', ended(5, 'unspecified', 8), 9),
  ],
  'a late look at an old state, as LOCAL reads are': [
    granted([0, 1], 'a', 5),
    released([2, 3], 5, 6),
    got([10, 11], lease(5, 'a'), 5, 'local'),
    got([12, 13], undefined, 4, 'local'),
    got([14, 15], undefined, 6, 'local'),
  ],
  'calls that were refused do nothing': [
    granted([0, 1], 'a', 5),
    refused(unanswered.release(2, 5)),
    refused(unanswered.acquire(2, 'b')),
    got([10, 11], lease(5, 'a'), 5),
  ],
};

const bad: Record<string, readonly [code: string, history: readonly Operation[]]> = {
  'two grants at once': ['LINEAR', [granted([0, 1], 'a', 5), granted([10, 11], 'b', 6)]],
  'a grant that a later get does not know': ['LINEAR', [granted([0, 1], 'a', 5), got([10, 11], undefined, 6)]],
  'a lost grant: the revision of a later get lies before it': [
    'STALE',
    [granted([0, 1], 'a', 5), got([10, 11], undefined, 4)],
  ],
  'a get that still shows a released lease': [
    'ORDER',
    [granted([0, 1], 'a', 5), released([10, 11], 5, 6), got([20, 21], lease(5, 'a'), 6)],
  ],
  'a local read that contradicts its revision': [
    'ORDER',
    [granted([0, 1], 'a', 5), renewed([2, 3], 5, 8), got([4, 5], undefined, 7, 'local')],
  ],
  'an expiry just before the safe deadline': [
    'LINEAR',
    [granted([0, 1], 'a', 5), renewed([100, 101], 5, 5), got([102, 99 + SAFE_MS], undefined, 6)],
  ],
  'an expiry before the deadline that the recorder gives': [
    'LINEAR',
    [{ ...granted([0, 1], 'a', 5), safeUntil: 990 }, got([102, 989], undefined, 6)],
  ],
  'an expiry that is told too early': [
    'LINEAR',
    [granted([0, 1], 'a', 5), renewed([300, 301], 5, 6, ended(5, 'expired'))],
  ],
  'a token that falls': ['ORDER', [granted([0, 1], 'a', 7), released([2, 3], 7, 8), granted([4, 5], 'b', 6, 9)]],
  'a token not above what was told before the request': ['ORDER', [got([0, 1], undefined, 9), granted([4, 5], 'b', 9)]],
  'a token above the revision of its answer': ['ORDER', [granted([0, 1], 'a', 5, 4)]],
  'a renewal that lives again after the end': [
    'ORDER',
    [granted([0, 1], 'a', 5), renewed([2_000, 2_001], 5, 6, ended(5, 'expired')), renewed([2_010, 2_011], 5, 6)],
  ],
  'a release that another lease is told of': [
    'ANSWER',
    [granted([0, 1], 'a', 5), released([2, 3], 5, 6, ended(4, 'released'))],
  ],
  'a release that says released though it had expired': [
    'LEASE',
    [granted([0, 1], 'a', 5), renewed([2_000, 2_001], 5, 6, ended(5, 'expired')), released([2_010, 2_011], 5, 7)],
  ],
  'a lease that was released by nobody': [
    'LINEAR',
    [granted([0, 1], 'a', 5), renewed([2_000, 2_001], 5, 6, ended(5, 'released'))],
  ],
  'a release that took effect before it was sent': [
    'LINEAR',
    [granted([0, 1], 'a', 5), got([10, 11], undefined, 6), released([20, 21], 5, 6)],
  ],
  'a lease that was force-released twice': [
    'LEASE',
    [granted([0, 1], 'a', 5), forced([2, 3], 5, 6), forced([4, 5], 5, 7)],
  ],
  'a force-release that was told it found nothing': [
    'ORDER',
    [granted([0, 1], 'a', 5), forced([2, 3], 5, 6, 0), got([4, 5], lease(5, 'a'), 6)],
  ],
  'a request that is granted after its withdrawal': ['ORDER', [withdrawn([0, 1], 'a', 4), granted([2, 3], 'a', 5)]],
  'a withdrawn lease that lives on': [
    'ORDER',
    [granted([0, 1], 'a', 5), withdrawn([2, 3], 'a', 6), verified([4, 5], 5, 6)],
  ],
  'a withdrawal that nobody asked for': ['LEASE', [acquireEnded([0, 1], 'a', ended(undefined, 'withdrawn'), 4)]],
  'a withdrawn request that is only held later': [
    'LEASE',
    [granted([0, 1], 'b', 5), withdrawn([0, 1], 'a', 6), held([2, 3], 'a', 5, 'b', 7)],
  ],
  'held, though the domain was free during the whole call': [
    'ORDER',
    [granted([0, 1], 'b', 5), released([2, 3], 5, 6), held([10, 11], 'a', 5, 'b', 7)],
  ],
  'a request that is granted twice': [
    'ONCE',
    [granted([0, 1], 'a', 5), released([2, 3], 5, 6), granted([4, 5], 'a', 7)],
  ],
  'a token that two requests are granted': ['LEASE', [granted([0, 9], 'a', 5), granted([0, 9], 'b', 5)]],
  'a lease that nobody asked for': ['PHANTOM', [got([0, 1], lease(5, 'x'), 5)]],
  'a lease for a request that was refused': [
    'PHANTOM',
    [refused(unanswered.acquire(0, 'a')), got([10, 11], lease(5, 'a'), 5)],
  ],
  'a grant to an acquire that was told held, after its return': [
    'PHANTOM',
    [granted([0, 1], 'b', 5), held([2, 3], 'a', 5, 'b', 6), released([4, 5], 5, 7), got([10, 11], lease(8, 'a'), 8)],
  ],
  'a grant before its acquire was sent': ['LINEAR', [got([0, 1], lease(5, 'a'), 5), unanswered.acquire(10, 'a')]],
  'a lease that is shown with another holder': ['LEASE', [granted([0, 1], 'a', 5), got([2, 3], lease(5, 'b'), 5)]],
  'an end whose current token had not been granted yet': [
    'ORDER',
    [
      granted([0, 1], 'a', 5),
      released([2, 3], 5, 6),
      renewed([4, 5], 5, 6, ended(5, 'released', 7)),
      granted([10, 11], 'b', 7),
    ],
  ],
  'an end without the lease that lives then': [
    'ORDER',
    [
      granted([0, 1], 'a', 5),
      released([2, 3], 5, 6),
      granted([10, 11], 'b', 7),
      renewed([14, 15], 5, 7, ended(5, 'released', 0)),
    ],
  ],
  'a revision that falls': ['STALE', [got([0, 1], undefined, 5), got([2, 3], undefined, 4)]],
  'an acquire that is recovering after the first grant': [
    'ORDER',
    [granted([0, 1], 'a', 5), released([2, 3], 5, 6), recovering([4, 5], 'b', 7)],
  ],
  'never granted, of a lease that was': [
    'ORDER',
    [granted([0, 1], 'a', 5), released([2, 3], 5, 6), renewed([4, 5], 5, 6, ended(5, 'never_granted'))],
  ],
};

describe('histories that hold', () => {
  it.each(Object.entries(good))('%s', (_, history) => {
    expect(judge(history)).toEqual({ type: 'holds' });
    expect(judge(history.toReversed()), 'in another order of the list').toEqual({ type: 'holds' });
  });
});

describe('histories that do not', () => {
  it.each(Object.entries(bad))('%s', (_, [code, history]) => {
    const verdict = judge(history);
    expect(verdict).toMatchObject({ type: 'violated' });
    if (verdict.type === 'violated') expect(verdict.faults.join('\n')).toContain(`${code}: `);
  });
});

describe('facts of the log', () => {
  const history = [unanswered.acquire(0, 'a'), got([10, 11], lease(5, 'a'), 5)];
  const log = (...granted: [string, number][]) => ({
    granted: new Map(granted.map(([id, token]) => [id as never, rev(token)])),
  });

  it('agree', () => {
    expect(judge(history, log(['a', 5]))).toEqual({ type: 'holds' });
  });
  it('say that a request was never granted what a client saw', () => {
    expect(judge(history, log())).toMatchObject({ type: 'violated', faults: [expect.stringContaining('PHANTOM')] });
  });
  it('say that a request was granted something that nobody sent', () => {
    expect(judge(history, log(['a', 5], ['b', 7]))).toMatchObject({
      type: 'violated',
      faults: [expect.stringContaining('PHANTOM: the log grants 7 to b')],
    });
  });
  it('say that a grant nobody was told of stood in the way', () => {
    const others = [...history, released([20, 21], 5, 6), unanswered.acquire(22, 'b'), granted([30, 31], 'c', 9)];
    expect(judge(others, log(['a', 5], ['b', 7], ['c', 9]))).toEqual({ type: 'holds' });
    const early = [...others, got([23, 24], undefined, 8)];
    expect(judge(early, log(['a', 5], ['b', 7], ['c', 9])).type).toBe('holds');
    expect(judge(early, log(['a', 5], ['b', 9], ['c', 8])).type).toBe('violated');
  });
});

describe('the budget', () => {
  it('ends in unknown, which is no pass', () => {
    const history = [granted([0, 1], 'a', 5), released([2, 3], 5, 6), granted([4, 5], 'b', 7)];
    expect(judge(history, undefined, 2)).toEqual({ type: 'unknown', domain: 'd' });
    expect(judge(history, undefined, 100)).toEqual({ type: 'holds' });
  });
});
