import { expect, it } from 'vitest';
import type { AcquireAnswer, Call } from '../../../src/base/api.js';
import type { Domain } from '../../../src/base/ids.js';
import type { Revision } from '../../../src/base/revision.js';
import { judge } from '../../support/history/judge.js';
import { requestId } from '../../client/world.js';
import { Attempts } from '../clients/attempts.js';
import { historyOf } from './history.js';
import { acquireOf, exchange, HISTORY } from './told.js';

const COUNTING: Call = { ...acquireOf(1), slots: 2, waitMs: 100 };
const WAIT_OVER: AcquireAnswer['outcome'] = {
  type: 'notGranted',
  reason: 'wait_over',
  current: undefined,
  queueLength: 0,
  coolDownLeftMs: 0,
};
const SLOT = { domain: 'd#1' as Domain, token: 7 as Revision };

/** The verdict on one call that was answered so, where the log says that its request was granted a slot. */
function verdict(outcome: AcquireAnswer['outcome'] | undefined): string {
  const attempts = new Attempts([]);
  if (outcome !== undefined) {
    const answer = { type: 'acquire', requestId: requestId(1), outcome } as const;
    const judging = {
      sent: () => undefined,
      told: (told: (typeof attempts.all)[number]) =>
        void attempts.all.push({ ...told, answeredBy: { incarnation: HISTORY, revision: 9 as Revision } }),
    };
    exchange(judging, COUNTING, 1, 5, answer);
  }
  const grants = new Map([[requestId(1), SLOT]]);
  const log = { granted: new Map([[requestId(1), SLOT.token]]) };
  const judged = judge(historyOf(HISTORY, attempts.all, grants), log);
  return judged.type === 'violated' ? judged.faults.join() : judged.type;
}

it('lets a request for a slot have one for a while of which nobody was told (F7)', () => {
  expect(verdict(WAIT_OVER)).toBe('holds');
});

it('rejects a grant of a slot that nobody asked for', () => {
  expect(verdict(undefined)).toContain('PHANTOM');
});
