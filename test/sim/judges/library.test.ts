/** The judge of the client library says what is wrong, and nothing else. */
import { describe, expect, it } from 'vitest';
import type { Attempt } from '../clients/attempts.js';
import { Coverage } from '../coverage.js';
import type { Fault } from '../observation.js';
import { Library } from './library.js';
import { acquireOf, attempt, DOMAIN, exchange, grant, refusal } from './told.js';

function setUp(): { library: Library; faults: Fault[]; send: (n: number, seen?: number) => Attempt } {
  const faults: Fault[] = [];
  const report = (fault: Fault): void => {
    faults.push(fault);
  };
  const library = new Library(report, new Coverage(), (client) => client === 'c1');
  const send = (n: number, seen = 1): Attempt => {
    const sent = attempt(acquireOf(n, seen), 10);
    library.sent(sent);
    return sent;
  };
  return { library, faults, send };
}

describe('the judge of the client library', () => {
  it('demands the revision that the client has seen', () => {
    const { faults, send } = setUp();
    send(1, 5);
    expect(faults).toEqual([]);
    send(2, 0);
    expect(faults).toMatchObject([{ code: 'SEEN' }]);
  });

  it('demands that a request of unknown outcome is withdrawn', () => {
    const { library, faults, send } = setUp();
    library.dropped(send(1), true);
    library.finish();
    expect(faults).toMatchObject([{ code: 'ORPHAN' }]);
  });

  it('does not take it for settled that another holds the domain', () => {
    const { library, faults, send } = setUp();
    library.dropped(send(1), true);
    const { requestId } = acquireOf(1);
    const outcome = {
      type: 'notGranted',
      reason: 'held',
      current: undefined,
      queueLength: 0,
      coolDownLeftMs: 0,
    } as const;
    exchange(library, acquireOf(1), 20, 21, { type: 'acquire', requestId, outcome });
    library.finish();
    expect(faults).toMatchObject([{ code: 'ORPHAN' }]);
  });

  it('is content with a withdrawal, an answer, or a call that never left', () => {
    const { library, faults, send } = setUp();
    library.dropped(send(1), true);
    library.sent(attempt({ type: 'withdraw', domain: DOMAIN, requestId: acquireOf(1).requestId }, 20));
    refusal(library, acquireOf(2), 30, 'NO_LEADER');
    library.dropped(send(3), false);
    library.dropped(send(4), true);
    grant(library, 4, 100, 40, 41);
    library.finish();
    expect(faults).toEqual([]);
  });

  it('asks nothing of a process that was killed, nor of who speaks for itself', () => {
    const { library, faults, send } = setUp();
    library.dropped(send(1), true);
    library.killed('c1.1');
    const other = attempt(acquireOf(2, 0), 10, { client: 'r1' });
    library.sent(other);
    library.dropped(other, true);
    library.finish();
    expect(faults).toEqual([]);
  });
});
