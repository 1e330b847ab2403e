/**
 * TAKEOVER (contract 6): a lease whose holder no longer renews is over at most 1.03 × TTL + 1 s after its last renewal
 * reached a leader, plus, for each leader change since, 0.52 × TTL + 1 s and the leaderless time. Judged from what the
 * members' processes were handed and what they applied, never from a clock of the product. Also tells the other judges
 * of every grant and every end, as the first member applies it.
 */
import type { Call, LeaseRef } from '../../../src/base/api.js';
import type { Domain, RequestId } from '../../../src/base/ids.js';
import { from } from '../../../src/lease/fifo.js';
import type { Lease } from '../../../src/lease/types.js';
import type { Context } from '../../../src/replica/state.js';
import type { Loaded } from '../../../src/replica/types.js';
import type { Coverage } from '../coverage.js';
import type { Observer, Process, Report, Step } from '../observation.js';

/**
 * A leader serves between two of its commits that lie at most this far apart, in true milliseconds, and took no longer
 * each; all other time counts as leaderless: its disks or its links are worse than the contract allows for. It is well
 * below the second that the contract allows for everything else.
 */
const SERVING_GAP_MS = 300;

/** Told of what the first member to apply it shows. */
export interface LeaseEvents {
  granted(incarnation: string, lease: Lease, at: number): void;
}

/** When something that may renew a lease was last at a process: an upper bound of its arrival at a leader. */
interface Touch {
  at: number;
  /** Calls at any process that may still renew it. */
  open: number;
  /** Leaderships and led time so far. */
  changes: number;
  ledMs: number;
}

/** A live lease, with what renews it: calls that name it, and calls with the request id that it answers. */
interface Followed {
  readonly lease: Lease;
  readonly byName: Touch;
  readonly byRequest: Touch;
}

/** What is known of one incarnation. */
interface History {
  /** By domain and token; dropped when over. */
  readonly followed: Map<string, Followed>;
  readonly known: Set<string>;
  /** What each request was granted; undefined once some of it may have been missed. */
  grants: Map<RequestId, LeaseRef> | undefined;
  /** The greatest index that was applied. */
  applied: number;
  readonly requests: Map<string, Touch>;
  /** Leaderships that began to serve, by process and term. */
  readonly leaderships: Set<string>;
  ledMs: number;
  /** The last commit of a leader that was seen. */
  last: { readonly leadership: string; readonly at: number } | undefined;
}

/** One life of a process. */
interface Seen {
  applied: number;
  readonly leases: Map<Domain, Lease>;
  /** Where a leader's log ended, and since when, as far as it is not committed. */
  appended: { readonly end: number; readonly at: number }[];
  /** What an open call may renew, by the call's origin. */
  readonly open: Map<string, readonly Touch[]>;
}

/** See the head of the file. */
export class Takeover implements Observer {
  readonly #report: Report;
  readonly #coverage: Coverage;
  readonly #domains: readonly Domain[];
  readonly #events: LeaseEvents;
  readonly #now: () => number;
  readonly #histories = new Map<string, History>();
  readonly #seen = new Map<number, Seen>();

  constructor(report: Report, coverage: Coverage, domains: readonly Domain[], events: LeaseEvents, now: () => number) {
    this.#report = report;
    this.#coverage = coverage;
    this.#domains = domains;
    this.#events = events;
    this.#now = now;
  }

  started(process: Process, _loaded: Loaded, context: Readonly<Context>): void {
    const seen: Seen = { applied: context.applied, leases: new Map(), appended: [], open: new Map() };
    this.#seen.set(process.run, seen);
    this.#compare(process, seen, context, this.#now());
  }

  stepped({ process, at, events, effects, context }: Step): void {
    const seen = this.#seen.get(process.run);
    if (seen === undefined) return;
    const history = this.#history(process);
    for (const event of events) {
      if (event.type === 'call') this.#opened(history, seen, `own ${event.id}`, event.call, at);
      else if (event.type === 'forwarded') this.#opened(history, seen, `${event.from} ${event.id}`, event.call, at);
    }
    this.#lead(history, seen, process, context, at);
    if (context.applied !== seen.applied) {
      seen.applied = context.applied;
      this.#compare(process, seen, context, at);
    }
    for (const event of events) {
      if (event.type === 'cancel') this.#closed(history, seen, `own ${event.id}`, at);
      else if (event.type === 'forwardCancelled') this.#closed(history, seen, `${event.from} ${event.id}`, at);
    }
    for (const effect of effects) {
      if (effect.type === 'answer') this.#closed(history, seen, `own ${effect.id}`, at);
      else if (effect.type === 'forwardResult') this.#closed(history, seen, `${effect.to} ${effect.id}`, at);
    }
    if (context.leadership?.ready !== undefined) this.#overdue(history, context, at);
  }

  ended(process: Process): void {
    const seen = this.#seen.get(process.run);
    if (seen === undefined) return;
    for (const origin of [...seen.open.keys()]) this.#closed(this.#history(process), seen, origin, this.#now());
    this.#seen.delete(process.run);
  }

  #history({ genesis }: Process): History {
    let history = this.#histories.get(genesis.incarnation);
    if (history === undefined) {
      history = {
        followed: new Map(),
        known: new Set(),
        grants: new Map(),
        applied: genesis.history.start,
        requests: new Map(),
        leaderships: new Set(),
        ledMs: 0,
        last: undefined,
      };
      this.#histories.set(genesis.incarnation, history);
    }
    return history;
  }

  /** What each request was granted in this history, as its members' states show; undefined when that may not be all. */
  grantsOf(incarnation: string): ReadonlyMap<RequestId, LeaseRef> | undefined {
    return this.#histories.get(incarnation)?.grants;
  }

  #opened(history: History, seen: Seen, origin: string, call: Call, at: number): void {
    const named: Touch[] = [];
    if (call.type === 'acquire') {
      let request = history.requests.get(call.requestId);
      if (request === undefined) history.requests.set(call.requestId, (request = newTouch(history, at)));
      named.push(request);
    } else if (call.type === 'renew') {
      for (const ref of call.leases) {
        const byName = history.followed.get(`${ref.domain} ${ref.token}`)?.byName;
        if (byName !== undefined && !named.includes(byName)) named.push(byName);
      }
    }
    if (named.length === 0) return;
    seen.open.set(origin, named);
    for (const each of named) {
      each.open++;
      touch(history, each, at);
    }
  }

  #closed(history: History, seen: Seen, origin: string, at: number): void {
    const named = seen.open.get(origin);
    if (named === undefined) return;
    seen.open.delete(origin);
    for (const each of named) {
      each.open--;
      touch(history, each, at);
    }
  }

  #lead(history: History, seen: Seen, process: Process, context: Readonly<Context>, at: number): void {
    const { leadership } = context;
    if (leadership === undefined) {
      seen.appended = [];
      return;
    }
    const { log, commit } = context.raft;
    const end = log.anchor.index + log.entries.length;
    if (end > (seen.appended.at(-1)?.end ?? 0)) seen.appended.push({ end, at });
    const tookMs = at - (seen.appended.find((each) => each.end >= commit)?.at ?? at);
    seen.appended = seen.appended.filter((each) => each.end > commit);
    if (leadership.ready === undefined) return;
    const name = `${process.run} ${leadership.term}`;
    history.leaderships.add(name);
    if (context.applied === seen.applied) return;
    const { last } = history;
    const serves = Math.max(tookMs, at - (last?.at ?? at)) <= SERVING_GAP_MS;
    if (last?.leadership === name && serves) history.ledMs += at - last.at;
    history.last = { leadership: name, at };
  }

  /** Finds what was granted and what has ended since the process was last looked at. */
  #compare(process: Process, seen: Seen, context: Readonly<Context>, at: number): void {
    const history = this.#history(process);
    const { limits, requests } = context.lease;
    const fresh = context.applied - history.applied;
    history.applied = Math.max(history.applied, context.applied);
    // What was granted and over within one step is known only as long as it is remembered.
    if (fresh > 2 && fresh * this.#domains.length > limits.finishedRequests) history.grants = undefined;
    if (fresh > 1) {
      for (const { requestId, domain, token } of from(requests.order, 0)) {
        if (token !== undefined) history.grants?.set(requestId, { domain, token });
      }
    }
    for (const domain of this.#domains) {
      const now = context.lease.leases.get(domain);
      const before = seen.leases.get(domain);
      if (now?.token === before?.token) continue;
      if (before !== undefined) this.#over(history, before, at);
      if (now === undefined) seen.leases.delete(domain);
      else {
        seen.leases.set(domain, now);
        this.#granted(process, history, now, at);
      }
    }
  }

  #granted(process: Process, history: History, lease: Lease, at: number): void {
    const key = `${lease.domain} ${lease.token}`;
    if (history.known.has(key)) return;
    history.known.add(key);
    history.grants?.set(lease.requestId, lease);
    const byName = newTouch(history, at);
    const byRequest = history.requests.get(lease.requestId) ?? newTouch(history, at);
    history.requests.set(lease.requestId, byRequest);
    history.followed.set(key, { lease, byName, byRequest });
    this.#events.granted(process.genesis.incarnation, lease, at);
    this.#coverage.count('grant applied');
  }

  #over(history: History, { domain, token }: Lease, at: number): void {
    const key = `${domain} ${token}`;
    const followed = history.followed.get(key);
    if (followed === undefined) return;
    this.#judge(history, followed, at, 'has ended');
    history.followed.delete(key);
  }

  /** What a leader that serves still shows as live. */
  #overdue(history: History, context: Readonly<Context>, at: number): void {
    for (const followed of history.followed.values()) {
      const { domain, token } = followed.lease;
      if (context.lease.leases.get(domain)?.token === token) this.#judge(history, followed, at, 'is live');
    }
  }

  #judge(history: History, followed: Followed, at: number, what: string): void {
    const { lease, byName, byRequest } = followed;
    if (byName.open > 0 || byRequest.open > 0) return;
    const last = byName.at > byRequest.at ? byName : byRequest;
    const passedMs = at - last.at;
    if (passedMs <= lease.ttlMs) return;
    const changes = history.leaderships.size - last.changes;
    const leaderlessMs = passedMs - (history.ledMs - last.ledMs);
    const allowedMs = 1.03 * lease.ttlMs + 1_000 + changes * (0.52 * lease.ttlMs + 1_000) + leaderlessMs;
    if (what === 'has ended') this.#coverage.count('takeover judged');
    if (passedMs <= allowedMs) return;
    const text =
      `${lease.domain} ${lease.token} (TTL ${lease.ttlMs}) ${what} ${passedMs.toFixed(0)} ms after its last renewal at ` +
      `${last.at.toFixed(0)}; allowed were ${allowedMs.toFixed(0)} with ${changes} leader changes and ${leaderlessMs.toFixed(0)} ms without leader`;
    this.#report({ code: 'TAKEOVER', text: `${at.toFixed(2)}: ${text}` });
  }
}

function newTouch(history: History, at: number): Touch {
  return { at, open: 0, changes: history.leaderships.size, ledMs: history.ledMs };
}

function touch(history: History, of: Touch, at: number): void {
  of.at = at;
  of.changes = history.leaderships.size;
  of.ledMs = history.ledMs;
}
