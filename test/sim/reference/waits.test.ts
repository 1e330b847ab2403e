/** Who left its queue is told at once, but for the calls that may still have to wait for their own entry, or for a round. */
import { describe, expect, it } from 'vitest';
import type { Command } from '../../../src/lease/commands.js';
import type { Waiter } from '../../../src/lease/types.js';
import type { OpenCall } from './calls.js';
import type { LeaseModel } from './lease-model.js';
import { Waits } from './waits.js';
import type { Moment } from './waits.js';

const GRACE_MS = 5_000;
const ID = 'r1';
const WAITER = { requestId: ID, domain: 'd', queuedAt: 3, waitMs: 60_000 } as unknown as Waiter;
const FREEING = { type: 'expire', term: 1, leases: [], atUnixMs: 0 } as unknown as Command;
const ACQUIRE = { type: 'acquire', requestId: ID } as unknown as Command;

/** A leader that found one waiter, and is told of steps of 10 ms. */
class Leader {
  readonly faults: string[] = [];
  readonly #leases = {
    index: 3,
    holding: false,
    waiting: [WAITER],
    ids: new Map<string, unknown>([[ID, WAITER]]),
    left: [] as Waiter[],
    granted: [] as { requestId: string }[],
    queueOf: () => [],
    isTaken: () => true,
  };
  readonly #waits = new Waits(1, this.#model, 0, GRACE_MS, 0);

  get #model(): LeaseModel {
    return this.#leases as unknown as LeaseModel;
  }

  came(id: number, step: number): void {
    const call = { id, call: { type: 'acquire', requestId: ID }, over: false, since: { step }, holdUntil: Infinity };
    this.#waits.came(call as unknown as OpenCall);
  }

  appended(command: Command, index: number, step: number): void {
    this.#waits.proposed(command, index, this.#model, this.#moment(step), (text) => this.faults.push(text));
  }

  /** The entry at `index` grants the waiter; nobody has been answered when the step is over. */
  granted(command: Command, index: number, step: number): void {
    Object.assign(this.#leases, { index, left: [WAITER], granted: [{ requestId: ID }], waiting: [] });
    this.#leases.ids.set(ID, { domain: 'd', token: index });
    this.#waits.applied(this.#model, command, [], () => 2, this.#moment(step));
    this.#waits.settle(this.#model, this.#moment(step), (text) => this.faults.push(text));
  }

  #moment(step: number): Moment {
    const called = new Set([ID]);
    return { step, nowMs: 10 * step, ticked: true, handover: false, loaded: false, called };
  }
}

const UNANSWERED = [expect.stringMatching(/^does not answer call \d, though r1 left its queue at 4$/) as string];

describe('a call for a waiter that an entry granted', () => {
  it('is answered when that is applied', () => {
    const leader = new Leader();
    leader.came(1, 1);
    leader.appended(FREEING, 4, 2);
    leader.granted(FREEING, 4, 3);
    expect(leader.faults).toEqual(UNANSWERED);
  });

  it('may need a round first if it came in the step in which that was appended, or later', () => {
    for (const cameIn of [2, 3]) {
      const leader = new Leader();
      leader.appended(FREEING, 4, 2);
      leader.came(1, cameIn);
      leader.granted(FREEING, 4, 3);
      expect(leader.faults, `${cameIn}`).toEqual([]);
    }
  });

  it('waits for its own entry if it was offered the place; another call does not', () => {
    for (const [calls, faults] of [
      [1, []],
      [2, UNANSWERED],
    ] as const) {
      const leader = new Leader();
      for (let id = 1; id <= calls; id++) leader.came(id, 1);
      leader.appended(FREEING, 4, 2);
      leader.appended(ACQUIRE, 5, 2);
      leader.granted(FREEING, 4, 3);
      expect(leader.faults).toEqual(faults);
    }
  });

  it('is answered with its own entry, if that is what granted', () => {
    const leader = new Leader();
    leader.came(1, 1);
    leader.appended(ACQUIRE, 4, 2);
    leader.granted(ACQUIRE, 4, 3);
    expect(leader.faults).toEqual(UNANSWERED);
  });
});
