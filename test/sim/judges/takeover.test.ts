import { describe, expect, it } from 'vitest';
import type { BootId, DirectoryId, NodeId } from '../../../src/base/ids.js';
import type { Revision } from '../../../src/base/revision.js';
import { createFifo } from '../../../src/lease/fifo.js';
import type { Lease } from '../../../src/lease/types.js';
import type { Context } from '../../../src/replica/state.js';
import type { Effect, Event, Loaded } from '../../../src/replica/types.js';
import { requestId } from '../../client/world.js';
import { Coverage } from '../coverage.js';
import type { Process } from '../observation.js';
import { Takeover } from './takeover.js';
import { DOMAIN, HISTORY, TTL_MS, ref } from './told.js';

const LEASE: Lease = {
  domain: DOMAIN,
  token: 10 as Revision,
  requestId: requestId(1),
  holder: 'h',
  metadata: [],
  ttlMs: TTL_MS,
  coolDownMs: 0,
  grantedAtUnixMs: 1,
  owner: '',
  principal: 'addr:10.0.0.7',
  version: 0,
  checkpointLeftMs: undefined,
};

/** Two members' processes, of which a test says what they are handed and what they show. */
class Members {
  readonly codes: string[] = [];
  readonly texts: string[] = [];
  readonly coverage = new Coverage();
  readonly granted: number[] = [];
  readonly takeover = new Takeover(
    ({ code, text }) => {
      this.codes.push(code);
      this.texts.push(text);
    },
    this.coverage,
    [DOMAIN],
    {
      granted: (_incarnation, { token }) => {
        this.granted.push(token);
      },
    },
    () => this.at,
  );
  at = 0;
  #applied = 0;
  #calls = 0;
  #leases = new Map<string, Lease>();
  readonly #processes = new Map<number, Process>();

  constructor() {
    for (const run of [1, 2]) {
      const member = { node: `n${run}` as NodeId, directory: 'd' as DirectoryId };
      const genesis = { incarnation: HISTORY, history: { base: 0, start: 0 } };
      const process = { member, run, genesis, boot: 'b' as BootId } as unknown as Process;
      this.#processes.set(run, process);
      this.takeover.started(process, {} as Loaded, this.#context(undefined));
    }
  }

  /** The leader `run` of `term` commits something every 100 ms until `at`. */
  lead(run: number, term: number, at: number): void {
    while (this.at < at) {
      this.at = Math.min(at, this.at + 100);
      this.#applied++;
      this.step(run, term, []);
    }
  }

  grant(run: number, term: number): void {
    this.#leases.set(DOMAIN, LEASE);
    this.#applied++;
    this.step(run, term, []);
  }

  end(run: number, term: number): void {
    this.#leases.clear();
    this.#applied++;
    this.step(run, term, []);
  }

  /** A renewal comes to a process, which answers it or does not. */
  renew(run: number, term: number | undefined, answered: boolean): void {
    this.#calls++;
    const id = this.#calls;
    const principal = { name: 'c', authenticated: false };
    const call = { type: 'renew', leases: [ref(10)] } as const;
    const effects = answered ? [{ type: 'answer', id } as unknown as Effect] : [];
    this.step(run, term, [{ type: 'call', id, principal, timeoutMs: 1_000, call }], effects);
  }

  step(run: number, term: number | undefined, events: Event[], effects: Effect[] = []): void {
    const process = this.#processes.get(run);
    if (process === undefined) throw new Error(`no process ${run}`);
    const context = this.#context(term);
    this.takeover.stepped({ process, at: this.at, time: { nowMs: 0, unixMs: 0 }, events, effects, context });
  }

  #context(term: number | undefined): Context {
    return {
      applied: this.#applied,
      leadership: term === undefined ? undefined : { term, ready: { since: 0 } },
      // Whatever is appended is committed at once.
      raft: { commit: this.#applied, log: { anchor: { index: this.#applied, term: 1 }, entries: [] } },
      lease: {
        leases: new Map(this.#leases),
        requests: { order: createFifo() },
        limits: { finishedRequests: 100 },
      },
    } as unknown as Context;
  }
}

describe('takeover', () => {
  it('is in time when a lease ends within its TTL and a second', () => {
    const members = new Members();
    members.lead(1, 1, 100);
    members.grant(1, 1);
    members.lead(1, 1, 2_000);
    members.end(1, 1);
    expect(members.codes).toEqual([]);
    expect(members.granted).toEqual([10]);
    expect(members.coverage.counts.get('takeover judged')).toBe(1);
  });

  it('is late when a leader that serves still shows the lease', () => {
    const members = new Members();
    members.lead(1, 1, 100);
    members.grant(1, 1);
    members.lead(1, 1, 2_100);
    expect(members.codes).toEqual([]);
    members.lead(1, 1, 2_200);
    expect(members.codes).toEqual(['TAKEOVER']);
  });

  it('counts from the last renewal, at whatever process, and waits for open ones', () => {
    const members = new Members();
    members.lead(1, 1, 100);
    members.grant(1, 1);
    members.lead(1, 1, 1_000);
    members.renew(2, undefined, true);
    members.lead(1, 1, 3_000);
    members.renew(2, undefined, false);
    members.lead(1, 1, 9_000);
    expect(members.codes).toEqual([]);
  });

  it('is given more time by a leader change, and by the time without leader', () => {
    const members = new Members();
    members.lead(1, 1, 100);
    members.grant(1, 1);
    members.at = 1_000;
    // 900 ms without leader, one change: 2 030 + 1 520 + 900 after the grant.
    members.lead(2, 2, 4_500);
    expect(members.codes).toEqual([]);
    members.lead(2, 2, 4_900);
    expect(members.codes[0]).toBe('TAKEOVER');
  });

  it('is judged of the end, too', () => {
    const members = new Members();
    members.lead(1, 1, 100);
    members.grant(1, 1);
    members.lead(1, 1, 2_100);
    members.at = 2_400;
    members.end(1, 1);
    expect(members.codes).toEqual(['TAKEOVER']);
  });
});
