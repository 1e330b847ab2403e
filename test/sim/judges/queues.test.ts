import { describe, expect, it } from 'vitest';
import { Coverage } from '../coverage.js';
import type { Process, Step } from '../observation.js';
import { Queues } from './queues.js';
import { DOMAIN, HISTORY, acquireOf } from './told.js';
import { requestId } from '../../client/world.js';

const PROCESS = { run: 1, genesis: { incarnation: HISTORY, history: { base: 0, start: 0 } } } as unknown as Process;

/** The leader's process, of which a test says what it is handed and what its tables are after it. */
class Leader {
  readonly faults: string[] = [];
  readonly judge = new Queues(({ code }) => {
    this.faults.push(code);
  }, new Coverage());
  /** The nth requests that wait, in the order queued. */
  waiting: number[] = [];
  /** Token by domain or slot. */
  readonly leases = new Map<string, { token: number }>();
  readonly granted = new Map<number, string>();
  readonly slots = new Map<string, { counting: { slots: number } }>();
  readonly coolDowns = new Map<string, unknown>();
  /** The nth requests that an EndWait on its way is about. */
  ending: number[] = [];
  /** Where the log ends; all of it is committed unless `behind`. */
  end = 1;
  behind = 0;
  readonly #waiters = new Map<number, object>();

  constructor() {
    this.judge.started(PROCESS);
  }

  step(at: number, events: readonly unknown[] = []): void {
    const queue = this.waiting.map((n) => this.#waiter(n));
    const known = new Map<string, unknown>(this.waiting.map((n, place) => [requestId(n), queue[place]]));
    for (const [n, place] of this.granted) known.set(requestId(n), place);
    const { leases, slots, coolDowns } = this;
    const lease = {
      queues: new Map([[DOMAIN, queue]]),
      requests: { known },
      holding: false,
      ...{ leases, slots, coolDowns },
    };
    const waits = this.ending.map((n) => ({ requestId: requestId(n) }));
    const pending = new Map([[1, { command: { type: 'endWait', waits } }]]);
    const log = { anchor: { index: this.end }, entries: [] };
    const commit = this.end - this.behind;
    const context = {
      lease,
      leadership: { ready: 1, term: 1, pending },
      raft: { role: { type: 'leader', handover: undefined }, log, commit },
      options: { tickMs: 10 },
      applied: commit,
    };
    this.judge.stepped({ process: PROCESS, at, events, effects: [], context } as unknown as Step);
  }

  /** A call for the nth request comes, and is held. */
  called(n: number, at: number): void {
    this.step(at, [{ type: 'call', id: n, call: acquireOf(n) }]);
  }

  /** The entry that frees the domain for the nth request is proposed, and then applied. */
  grant(n: number, at: number): void {
    this.end++;
    this.behind = 1;
    this.step(at);
    this.behind = 0;
    this.waiting = this.waiting.filter((other) => other !== n);
    this.granted.set(n, DOMAIN);
    this.leases.set(DOMAIN, { token: this.end });
    this.step(at + 1);
  }

  #waiter(n: number): object {
    const waiter = this.#waiters.get(n) ?? { requestId: requestId(n), domain: DOMAIN, queuedAt: n };
    this.#waiters.set(n, waiter);
    return waiter;
  }
}

/** Two wait for a held domain; calls are held for those that are named. */
function two(...called: readonly number[]): Leader {
  const leader = new Leader();
  leader.leases.set(DOMAIN, { token: 1 });
  leader.waiting = [1, 2];
  leader.step(0);
  for (const n of called) leader.called(n, n);
  return leader;
}

describe('FAIR', () => {
  it('the first of two is granted', () => {
    const leader = two(1, 2);
    leader.grant(1, 10);
    expect(leader.faults).toEqual([]);
  });

  it('the second is granted, and the first is called for', () => {
    const leader = two(1, 2);
    leader.grant(2, 10);
    expect(leader.faults).toEqual(['FAIR']);
  });

  it('the second is granted, and nobody calls for the first, or does no more', () => {
    const never = two(2);
    never.grant(2, 10);
    const cancelled = two(1, 2);
    cancelled.step(5, [{ type: 'cancel', id: 1 }]);
    cancelled.grant(2, 10);
    expect([...never.faults, ...cancelled.faults]).toEqual([]);
  });

  it('the second is granted, and the wait of the first is being ended', () => {
    const leader = two(1, 2);
    leader.ending = [1];
    leader.grant(2, 10);
    expect(leader.faults).toEqual([]);
  });
});

describe('FREE', () => {
  it.each<[string, (leader: Leader) => void, string[]]>([
    [
      'free',
      (leader) => {
        leader.leases.clear();
      },
      ['FREE'],
    ],
    ['held', () => undefined, []],
    [
      'cooling down',
      (leader) => {
        leader.leases.clear();
        leader.coolDowns.set(DOMAIN, {});
      },
      [],
    ],
  ])('a domain that is %s, with a call held', (_, change, codes) => {
    const leader = two(1);
    change(leader);
    leader.step(100);
    leader.step(500);
    expect(leader.faults).toEqual([]);
    leader.step(600);
    expect(leader.faults).toEqual(codes);
  });

  it('a free domain, with no call held', () => {
    const leader = two();
    leader.leases.clear();
    leader.step(100);
    leader.step(600);
    expect(leader.faults).toEqual([]);
  });
});

describe('SLOTS', () => {
  const counts = (slots: number) => ({ counting: { slots } });

  it.each<[string, (leader: Leader) => void, string[]]>([
    ['all slots held', (leader) => leader.leases.set('d#1', { token: 2 }), []],
    ['a slot beyond the last', (leader) => leader.leases.set('d#2', { token: 2 }), ['SLOTS']],
    ['held as a whole', (leader) => leader.leases.set('d', { token: 2 }), ['SLOTS']],
    ['another number of slots', (leader) => leader.slots.set('d', counts(3)), ['SLOTS']],
    ['a slot of a name that does not count', (leader) => leader.leases.set('e#0', { token: 2 }), ['SLOTS']],
  ])('%s', (_, change, codes) => {
    const leader = new Leader();
    leader.slots.set('d', counts(2));
    leader.leases.set('d#0', { token: 1 });
    leader.step(0);
    change(leader);
    leader.end++;
    leader.step(1);
    expect(leader.faults).toEqual(codes);
  });
});
