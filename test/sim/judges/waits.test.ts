import { describe, expect, it } from 'vitest';
import type { Answer } from '../../../src/base/api.js';
import type { Incarnation } from '../../../src/base/ids.js';
import { CLOCK_DRIFT } from '../../../src/base/limits.js';
import { Coverage } from '../coverage.js';
import { DOMAIN, HISTORY, acquireOf, attempt, exchange, grant } from './told.js';
import { Waits } from './waits.js';

const WAIT_MS = 1_000;
const OTHER = 'b'.repeat(32) as Incarnation;

function judging() {
  const faults: string[] = [];
  const judge = new Waits(({ code }) => {
    faults.push(code);
  }, new Coverage());
  return { faults, judge };
}

/** The first request, sent at 0 to wait for {@link WAIT_MS}, is told at `at`, in revision 5, that its wait is over. */
function over(judge: Waits, at: number): void {
  const call = { ...acquireOf(1), waitMs: WAIT_MS };
  const outcome = { type: 'notGranted', reason: 'wait_over' } as const;
  const answer = { type: 'acquire', requestId: call.requestId, outcome } as unknown as Answer;
  exchange(judge, call, 0, at, answer, { revision: 5 });
}

describe('a wait', () => {
  it('that is over when it was asked to be is fine, by a clock that runs fast within the bound too', () => {
    for (const at of [WAIT_MS, WAIT_MS / (1 + CLOCK_DRIFT), 10 * WAIT_MS]) {
      const { faults, judge } = judging();
      over(judge, at);
      expect(faults, `${at}`).toEqual([]);
    }
  });

  it('that is over too early is a fault', () => {
    const { faults, judge } = judging();
    over(judge, WAIT_MS / (1 + CLOCK_DRIFT) - 1);
    expect(faults).toEqual(['WAIT']);
  });

  it('is as long as the shortest of its calls asked for', () => {
    const { faults, judge } = judging();
    judge.sent(attempt({ ...acquireOf(1), waitMs: WAIT_MS / 2 }, 0));
    over(judge, WAIT_MS / 2);
    expect(faults).toEqual([]);
  });

  it('that is over is granted nothing any more', () => {
    const { faults, judge } = judging();
    over(judge, WAIT_MS);
    grant(judge, 1, 6, WAIT_MS, WAIT_MS + 10);
    expect(faults).toEqual(['WAIT']);
  });

  it('that is over may hear late of an earlier grant, or be asked anew elsewhere or without a revision', () => {
    const { faults, judge } = judging();
    over(judge, WAIT_MS);
    grant(judge, 1, 5, 0, WAIT_MS + 10);
    grant(judge, 1, 6, WAIT_MS, WAIT_MS + 10, { incarnation: OTHER });
    grant(judge, 1, 6, WAIT_MS, WAIT_MS + 10, { seenRevision: 0 });
    expect(faults).toEqual([]);
  });
});

describe('a cool-down', () => {
  const first = { domain: DOMAIN, token: 10, coolDownMs: 500 };
  const next = { domain: DOMAIN, token: 20, coolDownMs: 0 };
  const OPEN_AT = 1_000 + 500 / (1 + CLOCK_DRIFT);

  it.each([
    ['in which the domain is granted', OPEN_AT - 1, ['COOL']],
    ['after which it is granted, by a fast clock', OPEN_AT, []],
  ])('%s', (_, at, codes) => {
    const { faults, judge } = judging();
    judge.granted(HISTORY, first, 0);
    judge.expired(HISTORY, DOMAIN, 10, 1_000);
    judge.granted(HISTORY, next, at);
    expect(faults).toEqual(codes);
  });

  it('follows on an expiry of a lease that asked for it alone, and in its own incarnation', () => {
    const { faults, judge } = judging();
    judge.granted(HISTORY, first, 0);
    judge.granted(HISTORY, next, 1_000);
    judge.expired(HISTORY, DOMAIN, 20, 1_100);
    judge.granted(HISTORY, { ...next, token: 30 }, 1_100);
    judge.expired(HISTORY, DOMAIN, 10, 1_200);
    judge.granted(OTHER, next, 1_201);
    expect(faults).toEqual([]);
  });
});
