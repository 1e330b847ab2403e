/**
 * Judges what the clients of a chaos run noted. Events come in the order of their times. Each domain has a short life
 * (`orders.ts`), so that what is known of it can be looked at as a whole and then forgotten.
 */
import type { Answer } from '../../../src/base/api.js';
import { slotOf } from '../../../src/base/domain.js';
import type { Domain } from '../../../src/base/ids.js';
import { DomainFacts } from './domain-facts.js';
import type { LeaseFacts } from './domain-facts.js';
import type { Applied, Began, ClientCall, ClientEvent, Ended, Granted, Observed } from './events.js';
import { DomainHistory } from './history.js';
import { Observers } from './observers.js';
import { POOL_SLOTS } from './orders.js';

/** Nothing is said of a domain for so long: it is over, in milliseconds. Longer than any call, pause and hold together. */
const OVER_MS = 60_000;

/** What a run has done, for the report. */
export interface Counts {
  calls: number;
  unanswered: number;
  grants: number;
  claims: number;
  writes: number;
  stale: number;
  notGranted: number;
  /** Leases that observers saw begin or end. */
  observed: number;
  /** Observations that began from now on: at their start, and where changes were lost for good. */
  observations: number;
  /** Grants of slots, and of domains with a cool-down. */
  slots: number;
  coolDowns: number;
  /** Operations whose domain's history was searched as a whole. */
  searched: number;
  /** Operations of histories for which that would have taken too long. */
  undecided: number;
  /** By cause. */
  readonly losses: Map<string, number>;
}

/** See the head of the file. */
export class Judge {
  /** Everything that must not be, once each. */
  readonly violations = new Set<string>();
  readonly counts: Counts = {
    calls: 0,
    unanswered: 0,
    grants: 0,
    claims: 0,
    writes: 0,
    stale: 0,
    notGranted: 0,
    observed: 0,
    observations: 0,
    slots: 0,
    coolDowns: 0,
    searched: 0,
    undecided: 0,
    losses: new Map(),
  };
  readonly #observers = new Observers((sentence) => {
    this.violations.add(sentence);
  });
  readonly #domains = new Map<string, DomainFacts>();
  readonly #histories = new Map<string, DomainHistory>();
  readonly #over = new Set<string>();
  readonly #open = new Map<string, Began>();
  /** By domain, the greatest token in the resource's own account. */
  readonly #resource = new Map<string, number>();

  /** The next event. */
  add(event: ClientEvent | Applied): void {
    switch (event.type) {
      case 'began':
        this.counts.calls++;
        this.#open.set(event.op, event);
        this.#historyOf(event.call).began(event);
        this.#began(event);
        return;
      case 'ended':
        this.#ended(event);
        return;
      case 'granted':
        this.#handedOut(event);
        return;
      case 'claimed':
        this.counts.claims++;
        this.#held(event, event.from);
        return;
      case 'lost':
        this.counts.losses.set(event.why, (this.counts.losses.get(event.why) ?? 0) + 1);
        return;
      case 'releasing': {
        const lease = this.#of(event).leases.get(event.token);
        if (lease !== undefined) lease.givenBackFrom = Math.min(lease.givenBackFrom, event.at);
        return;
      }
      case 'verified':
        this.#of(event).sights.push({
          from: event.from,
          to: event.at,
          token: event.token,
          live: event.current,
          how: 'verify of the library',
        });
        return;
      case 'wrote':
        if (event.status === 'applied') {
          this.counts.writes++;
          this.#of(event).writes.push({ from: event.from, to: event.at, token: event.token });
        } else if (event.status === 'stale') this.counts.stale++;
        else if (event.status === 'rejected') this.violations.add(`${event.domain}: the guard rejected ${event.token}`);
        return;
      case 'missed':
        this.counts.notGranted++;
        return;
      case 'observing':
        if (event.from === 0) this.counts.observations++;
        this.#observers.observing(event);
        return;
      case 'observed':
        this.#observed(event);
        return;
      case 'applied': {
        const greatest = this.#resource.get(event.domain) ?? 0;
        if (event.token < greatest)
          this.violations.add(`${event.domain}: the resource committed ${event.token} after ${greatest}`);
        else this.#resource.set(event.domain, event.token);
        return;
      }
    }
  }

  /** Looks at every domain that is known; at `now` those that are over are judged as a whole and forgotten. */
  look(now: number): void {
    for (const [domain, facts] of this.#domains) {
      for (const sentence of facts.impossible()) this.violations.add(sentence);
      if (facts.lastAt > now - OVER_MS) continue;
      this.#domains.delete(domain);
      this.#over.add(domain);
      this.#resource.delete(domain);
      const history = this.#histories.get(domain);
      this.#histories.delete(domain);
      if (history === undefined) continue;
      const verdict = history.judge();
      if (verdict.type === 'unknown') this.counts.undecided += history.size;
      else this.counts.searched += history.size;
      if (verdict.type === 'violated') for (const fault of verdict.faults) this.violations.add(fault);
    }
  }

  #handedOut({ domain, token, handle, from, at, coolDownMs }: Granted): void {
    this.counts.grants++;
    const lease = this.#of({ domain, at }).granted(token, handle, from, at);
    lease.coolDownMs = coolDownMs;
    if (coolDownMs > 0) this.counts.coolDowns++;
    const slot = slotOf(domain as Domain);
    if (slot !== undefined) this.counts.slots++;
    if (slot !== undefined && slot.number >= POOL_SLOTS)
      this.violations.add(`${domain}: granted, and ${slot.name} has ${POOL_SLOTS} slots`);
    this.#observers.acknowledged(domain, token);
  }

  #observed(event: Observed): void {
    this.counts.observed += event.leases.length;
    this.#observers.observed(event);
    const { at } = event;
    for (const { domain, token, live } of event.leases) {
      if (!live) this.#domains.get(domain)?.sights.push({ from: at, to: at, token, live, how: event.observer });
    }
  }

  #began({ call, at }: Began): void {
    const facts = this.#of({ domain: domainOf(call), at });
    if (call.type === 'release') {
      const lease = facts.leases.get(call.lease.token);
      if (lease !== undefined) lease.givenBackFrom = Math.min(lease.givenBackFrom, at);
    } else if (call.type === 'withdraw') {
      for (const lease of facts.leases.values())
        if (lease.holder === call.requestId) lease.givenBackFrom = Math.min(lease.givenBackFrom, at);
    }
  }

  #ended(event: Ended): void {
    const began = this.#open.get(event.op);
    if (began === undefined) throw new Error(`${event.op} ended and never began`);
    this.#open.delete(event.op);
    this.#historyOf(began.call).ended(event);
    if (event.answer === undefined) this.counts.unanswered++;
    else this.#answered(began, event.answer, event.at);
  }

  #answered({ call, at: from, actor }: Began, answer: Answer, to: number): void {
    const facts = this.#of({ domain: domainOf(call), at: to });
    const saw = (token: number, live: boolean): void => {
      facts.sights.push({ from, to, token, live, how: `${call.type} of ${actor}` });
    };
    if (call.type === 'acquire' && answer.type === 'acquire') {
      const { outcome } = answer;
      if (outcome.type === 'granted') {
        const { token, ttlMs } = outcome.lease;
        if (!facts.leases.has(token)) this.counts.grants++;
        const lease = facts.granted(token, call.requestId, from, to);
        this.#observers.acknowledged(call.domain, token);
        confirmed(lease, from, ttlMs);
        const tokens = facts.told.get(call.requestId) ?? new Set<number>();
        facts.told.set(call.requestId, tokens.add(token));
        saw(token, true);
      } else if (outcome.type === 'ended' && outcome.ended.lease !== undefined) saw(outcome.ended.lease.token, false);
      else if (outcome.type === 'notGranted') {
        this.counts.notGranted++;
        this.#current(facts, outcome.current?.token, saw);
      }
    } else if (call.type === 'renew' && answer.type === 'renew') {
      const [ref] = call.leases;
      const [result] = answer.results;
      if (ref === undefined || result === undefined) return;
      saw(ref.token, result.type === 'live');
      const lease = facts.leases.get(ref.token);
      if (result.type === 'live' && lease !== undefined) confirmed(lease, from, result.ttlMs);
      if (result.type === 'ended') this.#lost(result.ended.reason);
    } else if (call.type === 'verify' && answer.type === 'verify')
      saw(call.lease.token, answer.outcome.type === 'live');
    else if (call.type === 'get' && answer.type === 'get') this.#current(facts, answer.lease?.token, saw);
    else if (call.type === 'release' && answer.type === 'release') {
      const lease = facts.leases.get(call.lease.token);
      if (lease !== undefined) lease.givenBackBy = Math.min(lease.givenBackBy, to);
    } else if (call.type === 'withdraw') {
      facts.withdrawnBy.set(call.requestId, Math.min(facts.withdrawnBy.get(call.requestId) ?? Infinity, to));
      for (const lease of facts.leases.values())
        if (lease.holder === call.requestId) lease.givenBackBy = Math.min(lease.givenBackBy, to);
    }
  }

  /** The domain's only live lease is `token`; undefined: there is none. */
  #current(facts: DomainFacts, token: number | undefined, saw: (token: number, live: boolean) => void): void {
    for (const lease of facts.leases.values()) if (lease.token !== token) saw(lease.token, false);
    if (token !== undefined) saw(token, true);
  }

  #lost(reason: string): void {
    this.counts.losses.set(reason, (this.counts.losses.get(reason) ?? 0) + 1);
  }

  #held(event: { readonly domain: string; readonly token: number; readonly at: number }, until: number): void {
    const lease = this.#of(event).leases.get(event.token);
    if (lease !== undefined) lease.heldUntil = Math.max(lease.heldUntil, until);
  }

  #of({ domain, at }: { readonly domain: string; readonly at: number }): DomainFacts {
    const facts = this.#domains.get(domain) ?? new DomainFacts(domain);
    if (this.#over.has(domain)) throw new Error(`${domain} was over and is used again`);
    this.#domains.set(domain, facts);
    facts.lastAt = Math.max(facts.lastAt, at);
    return facts;
  }

  #historyOf(call: ClientCall): DomainHistory {
    const domain = domainOf(call);
    const history = this.#histories.get(domain) ?? new DomainHistory();
    this.#histories.set(domain, history);
    return history;
  }
}

/** The domain of a call; those of this suite have one each. */
function domainOf(call: ClientCall): string {
  switch (call.type) {
    case 'acquire':
    case 'withdraw':
    case 'get':
      return call.domain;
    case 'release':
    case 'verify':
      return call.lease.domain;
    case 'renew':
      return call.leases[0]?.domain ?? '';
  }
}

/** Rule 1 of `lease.proto`: a call that was sent at `from` and answered carries the holder so far. */
function confirmed(lease: LeaseFacts, from: number, ttlMs: number): void {
  const until = from + ttlMs * 0.99 - Math.max(50, ttlMs * 0.02);
  lease.heldUntil = Math.max(lease.heldUntil, until);
}
