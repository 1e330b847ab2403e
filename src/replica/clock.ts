/**
 * The leader's lease clock (design 7, "Time"; research 5.2–5.4). Only a leader has one, made when its own no-op is
 * applied and thrown away when it steps down. It uses monotonic durations only and decides nothing by itself: it says
 * which leases are due for a Checkpoint or an Expire; the replicated state machine has the last word.
 */
import { assert } from '../base/assert.js';
import { BigMap } from '../base/big-map.js';
import { CLOCK_DRIFT, EXPIRY_MARGIN_MS } from '../base/limits.js';
import type { Domain } from '../base/ids.js';
import type { Revision } from '../base/revision.js';
import type { Lease } from '../lease/types.js';

/** One live lease as the leader times it. */
export interface Timed {
  readonly domain: Domain;
  readonly token: Revision;
  readonly ttlMs: number;
  /** Expiry if no renewal comes. Only ever moves later, but for {@link endTime}. */
  deadline: number;
  /** Arrival of the last renewal, or this leader's start. */
  renewedAt: number;
  /** Index of this leader's newest Checkpoint of the lease, 0 for none. */
  checkpointIndex: number;
  /** Set while an Expire is open: nothing is answered for the lease until its outcome (L2). Holds what waits. */
  expiring: (() => void)[] | undefined;
  /** What waits for a Void that has not been appended yet. */
  voidWanted: (() => void)[] | undefined;
  /** False once the lease has ended. */
  live: boolean;
  /** The time of its place in the queue. */
  queuedAt: number;
}

/** The leases that lived when a leader began, as far as it does not time them yet. */
interface Found {
  /** Those that begin to live meanwhile may come too, timed already. */
  readonly leases: Iterator<Lease>;
  /** When the leader began: their time counts from there, whenever it gets to them. */
  readonly from: number;
}

/** The leases of one leader, ordered lazily by the time of their next event. */
export interface ExpiryClock {
  readonly timed: BigMap<Domain, Timed>;
  /** A binary heap by `queuedAt`; each live lease that is not expiring is in it exactly once. */
  queue: Timed[];
  /** How many in the queue have ended; swept when they are the greater part, so that a long TTL keeps no garbage. */
  dead: number;
  found: Found | undefined;
}

/** A clock without leases. */
export function createClock(): ExpiryClock {
  return { timed: new BigMap(), queue: [], dead: 0, found: undefined };
}

/** How long the leader lets a lease live after a renewal's arrival: `TTL × 1.01 + 100 ms` (F11, research 5.2 rule 7). */
export function leaderTtl(ttlMs: number): number {
  return ttlMs * (1 + CLOCK_DRIFT) + EXPIRY_MARGIN_MS;
}

/**
 * A leader begins at `from`, with those leases. They are timed by and by (see {@link timeFound}): a million in one go take
 * so long that the leader would step down over it, and the next one as well.
 */
export function takeOver(clock: ExpiryClock, leases: Iterable<Lease>, from: number): void {
  clock.found = { leases: leases[Symbol.iterator](), from };
}

/** Begins to time at most `limit` of the leases that were taken over and still live. */
export function timeFound(clock: ExpiryClock, limit: number): void {
  for (let looks = 0; clock.found !== undefined && looks < limit; looks++) {
    const next = clock.found.leases.next();
    if (next.done === true) clock.found = undefined;
    else timedOf(clock, next.value);
  }
}

/** How a live lease is timed. One that was taken over and had not its turn gets it now. */
export function timedOf(clock: ExpiryClock, lease: Lease): Timed {
  const { timed, found } = clock;
  const known = timed.get(lease.domain);
  if (known === undefined) {
    assert(found !== undefined, `live lease of ${lease.domain} is not timed`);
    return startTiming(clock, lease, found.from, leftWhenFound(lease));
  }
  assert(known.token === lease.token, `lease ${lease.token} of ${lease.domain} lives, timed is ${known.token}`);
  return known;
}

/** When a live lease expires if no renewal comes; undefined while the leader has not begun. */
export function deadlineOf({ timed, found }: ExpiryClock, lease: Lease): number | undefined {
  const known = timed.get(lease.domain);
  if (known?.token === lease.token) return known.deadline;
  return found === undefined ? undefined : found.from + leftWhenFound(lease);
}

/** Its full time, or what its checkpoint left. No entry changes that before the lease is timed. */
function leftWhenFound({ ttlMs, checkpointLeftMs }: Lease): number {
  return checkpointLeftMs ?? leaderTtl(ttlMs);
}

/** Begins to time a lease: one that this leader sees granted, from the arrival of its call, or one that it found. */
export function startTiming(clock: ExpiryClock, lease: Lease, from: number, leftMs: number): Timed {
  assert(clock.timed.get(lease.domain) === undefined, `domain ${lease.domain} is timed already`);
  const timed: Timed = {
    domain: lease.domain,
    token: lease.token,
    ttlMs: lease.ttlMs,
    deadline: from + leftMs,
    renewedAt: from,
    checkpointIndex: 0,
    expiring: undefined,
    voidWanted: undefined,
    live: true,
    queuedAt: 0,
  };
  clock.timed.set(lease.domain, timed);
  enqueue(clock, timed, from + Math.min(leftMs, lease.ttlMs / 2));
  return timed;
}

/** A renewal arrived at `at`. Never shortens; an expiring lease must wait for its outcome instead. */
export function renewTimed(timed: Timed, at: number): void {
  assert(timed.expiring === undefined, `lease ${timed.domain} is renewed while its Expire is open`);
  timed.deadline = Math.max(timed.deadline, at + leaderTtl(timed.ttlMs));
  timed.renewedAt = Math.max(timed.renewedAt, at);
}

/** The lease has ended; returns what waited for its fate, each once: a Void that is appended later resumes none of it. */
export function stopTiming(clock: ExpiryClock, domain: Domain, token: Revision): (() => void)[] {
  const timed = clock.timed.get(domain);
  if (timed?.token !== token) return [];
  timed.live = false;
  clock.timed.delete(domain);
  if (timed.expiring === undefined) {
    clock.dead++;
    if (clock.dead > 1_024 && clock.dead * 2 > clock.queue.length) {
      // A sorted array is a heap.
      clock.queue = clock.queue.filter((each) => each.live).sort((left, right) => left.queuedAt - right.queuedAt);
      clock.dead = 0;
    }
  }
  const waiting = [...(timed.expiring ?? []), ...(timed.voidWanted ?? [])];
  timed.voidWanted = undefined;
  return waiting;
}

/** An Expire of the lease was decided against: it lives and is timed again. Returns what waited for the outcome. */
export function expireIgnored(clock: ExpiryClock, timed: Timed, now: number): (() => void)[] {
  const waiting = timed.expiring ?? [];
  timed.expiring = undefined;
  enqueue(clock, timed, now);
  return waiting;
}

/**
 * The lease's time is over at `now`, as if its holder had been silent for all of it. Nothing in the product asks for
 * that; `fencepost/testing` does. An Expire that is open already stays as it is.
 */
export function endTime(clock: ExpiryClock, timed: Timed, now: number): void {
  if (timed.expiring !== undefined) return;
  timed.deadline = now;
  clock.queue = clock.queue.filter((each) => each !== timed).sort((left, right) => left.queuedAt - right.queuedAt);
  enqueue(clock, timed, now);
}

/** What is due now. */
export interface Due {
  readonly expire: readonly Timed[];
  readonly checkpoint: readonly Timed[];
}

/** For each lease that one call may return, so many are looked at: those that were renewed are only put back. */
const LOOKS = 10;

/**
 * Takes from the queue what is due at `now`, at most `limit` leases, oldest first; of a great many that come due together
 * the rest is left to the calls after it, so that no call takes long. All that are returned are out of the queue: an
 * Expire that was proposed puts its lease into it again with its outcome, the caller must do it for the rest.
 */
export function takeDue(clock: ExpiryClock, now: number, limit: number, flagged: (timed: Timed) => boolean): Due {
  const expire: Timed[] = [];
  const checkpoint: Timed[] = [];
  for (let looks = 0; expire.length + checkpoint.length < limit && looks < LOOKS * limit; looks++) {
    const first = clock.queue[0];
    if (first === undefined || first.queuedAt > now) break;
    dequeue(clock);
    if (!first.live) {
      clock.dead--;
      continue;
    }
    if (first.deadline <= now) expire.push(first);
    else if (flagged(first)) enqueue(clock, first, first.deadline);
    else if (first.renewedAt + first.ttlMs / 2 <= now) {
      checkpoint.push(first);
    } else enqueue(clock, first, Math.min(first.deadline, first.renewedAt + first.ttlMs / 2));
  }
  return { expire, checkpoint };
}

/** Queues a lease (again) for `at`. */
export function enqueue(clock: ExpiryClock, timed: Timed, at: number): void {
  timed.queuedAt = at;
  const { queue } = clock;
  let place = queue.length;
  queue.push(timed);
  while (place > 0) {
    const parent = (place - 1) >> 1;
    const above = queue[parent];
    if (above === undefined || above.queuedAt <= at) break;
    queue[place] = above;
    place = parent;
  }
  queue[place] = timed;
}

function dequeue(clock: ExpiryClock): void {
  const { queue } = clock;
  const last = queue.pop();
  if (last === undefined || queue.length === 0) return;
  let place = 0;
  for (;;) {
    let child = 2 * place + 1;
    const left = queue[child];
    if (left === undefined) break;
    const right = queue[child + 1];
    if (right !== undefined && right.queuedAt < left.queuedAt) child++;
    const smaller = queue[child];
    if (smaller === undefined || smaller.queuedAt >= last.queuedAt) break;
    queue[place] = smaller;
    place = child;
  }
  queue[place] = last;
}
