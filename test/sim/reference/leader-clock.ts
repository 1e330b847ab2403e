/**
 * A leader's lease clock, counted from what it was told (design 7, Time; F5, S9): the earliest moment at which it may
 * end a lease and the latest at which it has to, the flags of its checkpoints, its rounds. Each moment here lies at or
 * before that of the member, and each "latest" at or after it.
 */
import { CLOCK_DRIFT, EXPIRY_MARGIN_MS } from '../../../src/base/limits.js';
import type { Command } from '../../../src/lease/commands.js';
import type { LeaseModel } from './lease-model.js';
import type { Live } from './lease-state.js';

interface Timed {
  readonly token: number;
  readonly ttlMs: number;
  deadline: number;
  renewedAt: number;
  /** Whatever renewed it, its time is over by then. */
  latest: number;
  /** The step at whose end it was found overdue. */
  overdueIn: number | undefined;
}

/** Time enough for rounding of doubles. */
const EPSILON_MS = 1e-6;
/**
 * A lease whose Checkpoint is refused for load, or its Expire because of a hand-over, is looked at again after this, in
 * milliseconds.
 */
const RETRY_MS = 50;

/** A lease as a key. */
export function leaseKey({ domain, token }: { readonly domain: string; readonly token: number }): string {
  return `${domain} ${token}`;
}

/** How long a leader lets a lease live after a renewal came: TTL × 1.01 + 100 ms. */
export function patience(ttlMs: number): number {
  return ttlMs * (1 + CLOCK_DRIFT) + EXPIRY_MARGIN_MS;
}

/** See the head of the file. One for each leadership, from the apply of its no-op. */
export class LeaderClock {
  readonly term: number;
  readonly readyAt: number;
  readonly timed = new Map<string, Timed>();
  /** Index of this leader's Expire, Void and Checkpoint of a lease that are not applied. */
  readonly expires = new Map<string, { readonly index: number; readonly step: number }>();
  readonly voids = new Map<string, { readonly index: number }>();
  readonly checkpoints = new Map<string, number>();
  /** By round: the step in which it was sent first. */
  readonly rounds: number[] = [0];
  /** When a hand-over was last under way: nothing can be proposed then. */
  handoverAt = -Infinity;
  /** After so many ticks the leader has got to every lease that it found, if nobody called for it before. */
  #ticksToAll: number;

  /** Every lease gets its full time, or what its checkpoint left, from here. */
  constructor(term: number, state: LeaseModel, nowMs: number, timedPerTick: number) {
    this.term = term;
    this.readyAt = nowMs;
    this.#ticksToAll = Math.ceil(state.live.size / timedPerTick);
    for (const lease of state.live.values()) {
      const leftMs = lease.leftMs ?? patience(lease.ttlMs);
      this.#start(lease, nowMs, nowMs + leftMs, nowMs + leftMs);
    }
  }

  #start({ domain, token, ttlMs }: Live, from: number, deadline: number, latest: number): void {
    this.timed.set(domain, { token, ttlMs, deadline, renewedAt: from, latest, overdueIn: undefined });
  }

  /** An entry of this term was applied. */
  applied(state: LeaseModel, command: Command, arrivedAt: (requestId: string) => number, nowMs: number): void {
    for (const domain of state.touched) {
      if (this.timed.get(domain)?.token !== state.live.get(domain)?.token) this.timed.delete(domain);
    }
    for (const lease of state.granted) {
      // A waiter's time begins with its grant, whenever it called.
      const waited = state.left.some(({ requestId }) => requestId === lease.requestId);
      const from = waited ? nowMs : arrivedAt(lease.requestId);
      this.#start(lease, from, from + patience(lease.ttlMs), nowMs + patience(lease.ttlMs));
    }
    if (command.type === 'expire') this.#close(this.expires, command, state.index);
    if (command.type === 'void') this.#close(this.voids, command, state.index);
    if (command.type !== 'checkpoint') return;
    for (const key of command.leases) {
      if (this.checkpoints.get(leaseKey(key)) === state.index) this.checkpoints.delete(leaseKey(key));
    }
  }

  #close(
    open: Map<string, { readonly index: number }>,
    { leases }: Extract<Command, { readonly type: 'expire' | 'void' }>,
    index: number,
  ): void {
    for (const key of leases) if (open.get(leaseKey(key))?.index === index) open.delete(leaseKey(key));
  }

  /** A renewal that came at `at` counts, unless the fate of the lease is open. */
  renew(lease: { readonly domain: string; readonly token: number }, at: number): void {
    const timed = this.timed.get(lease.domain);
    if (timed?.token !== lease.token || this.expires.has(leaseKey(lease))) return;
    timed.deadline = Math.max(timed.deadline, at + patience(timed.ttlMs));
    timed.renewedAt = Math.max(timed.renewedAt, at);
  }

  /** A call that may renew the lease is here at `at`, whatever becomes of it. */
  named(lease: { readonly domain: string; readonly token: number }, at: number): void {
    const timed = this.timed.get(lease.domain);
    if (timed?.token === lease.token) timed.latest = Math.max(timed.latest, at + patience(timed.ttlMs));
  }

  /**
   * At the end of a step: a lease whose time is over, by whatever may have renewed it, has its Expire at the next tick
   * (contract 6; L5). `ticked`: there was one in this step.
   */
  checkOverdue(step: number, nowMs: number, ticked: boolean, fail: (text: string) => void): void {
    if (this.#ticksToAll > 0) {
      if (ticked) this.#ticksToAll--;
      return;
    }
    for (const [domain, timed] of this.timed) {
      const { token, latest, overdueIn } = timed;
      const over =
        nowMs > Math.max(latest, this.handoverAt) + RETRY_MS && !this.expires.has(leaseKey({ domain, token }));
      timed.overdueIn = over ? (overdueIn ?? step) : undefined;
      if (over && ticked && overdueIn !== undefined && overdueIn < step) {
        fail(`has not ended ${leaseKey({ domain, token })}, whose time was over ${nowMs - latest} ms ago`);
      }
    }
  }

  /** True while a Checkpoint is decided and not applied, or applied and not voided. */
  isFlagged(lease: Live | undefined): boolean {
    return lease !== undefined && (lease.leftMs !== undefined || this.checkpoints.has(leaseKey(lease)));
  }

  /** Judges a command that this leader appended by itself at `index`, with the state as it was at the tick. */
  proposed(
    command: Command,
    index: number,
    step: number,
    state: LeaseModel,
    nowMs: number,
    holdMs: number,
    fail: (text: string) => void,
  ): void {
    switch (command.type) {
      case 'expire':
        if (command.term !== this.term) fail(`proposes an Expire of term ${command.term} in term ${this.term}`);
        for (const key of command.leases) {
          const timed = this.#timed(state, key, 'Expire', fail);
          if (timed !== undefined && nowMs < timed.deadline - EPSILON_MS) {
            fail(`expires ${leaseKey(key)} ${timed.deadline - nowMs} ms early`);
          }
          const version = state.live.get(key.domain)?.version;
          if (version !== key.version)
            fail(`expires ${leaseKey(key)} as version ${key.version}, not ${version ?? 'none'}`);
          if (this.expires.has(leaseKey(key))) fail(`expires ${leaseKey(key)} twice`);
          this.expires.set(leaseKey(key), { index, step });
        }
        return;
      case 'checkpoint':
        for (const key of command.leases) {
          const timed = this.#timed(state, key, 'Checkpoint', fail);
          this.checkpoints.set(leaseKey(key), index);
          if (timed === undefined) continue;
          const silent = nowMs - timed.renewedAt;
          if (silent < timed.ttlMs / 2 - EPSILON_MS) fail(`checkpoints ${leaseKey(key)} after ${silent} ms of silence`);
          const left = Math.max(0, timed.deadline - nowMs - EPSILON_MS);
          if (key.leftMs < left || !Number.isInteger(key.leftMs)) {
            fail(`checkpoints ${leaseKey(key)} with ${key.leftMs} ms, ${left} are left`);
          }
        }
        return;
      case 'void':
        for (const key of command.leases) {
          this.#timed(state, key, 'Void', fail);
          this.voids.set(leaseKey(key), { index });
        }
        return;
      case 'endHold':
        if (command.term !== this.term) fail(`proposes an EndHold of term ${command.term} in term ${this.term}`);
        if (!state.holding) fail('ends a hold that there is not');
        if (nowMs - this.readyAt < holdMs - EPSILON_MS)
          fail(`ends the hold after ${nowMs - this.readyAt} of ${holdMs} ms`);
        return;
      case 'acquire':
      case 'withdraw':
      case 'release':
      case 'forceRelease':
      case 'endWait':
      case 'endCoolDown':
      case 'limits':
        return;
    }
  }

  #timed(
    state: LeaseModel,
    key: { readonly domain: string; readonly token: number },
    what: string,
    fail: (text: string) => void,
  ): Timed | undefined {
    const timed = this.timed.get(key.domain);
    if (timed?.token === key.token && state.live.get(key.domain)?.token === key.token) return timed;
    fail(`proposes a ${what} of ${leaseKey(key)}, which does not live`);
    return undefined;
  }
}
