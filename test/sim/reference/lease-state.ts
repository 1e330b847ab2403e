/**
 * What the lease tables hold, as the relation keeps it: plain lists and maps, and the questions that can be asked of them,
 * each a walk. Nothing of `src/lease` runs here. What commands do to it is in `lease-model.ts`.
 */
import type { EndedView, EndReason, LeaseRef } from '../../../src/base/api.js';
import { ZERO_REVISION } from '../../../src/base/revision.js';
import type {
  CoolDown,
  CountingName,
  FinishedRequest,
  Lease,
  StateLimits,
  StateRecord,
  StateSummary,
  Waiter,
} from '../../../src/lease/types.js';

/** A lease that lives. */
export interface Live extends Omit<Lease, 'version' | 'checkpointLeftMs'> {
  version: number;
  leftMs: number | undefined;
  /** Index of the last Checkpoint that was applied. */
  checkpointed: number;
  /** Index and term of the last Void that was applied. */
  voided: { readonly index: number; readonly term: number } | undefined;
}

/** A request that is over. */
export type Over = FinishedRequest;

/** What is known of a request id. */
export type Known = Live | Waiter | Over;

/** Whose quota it counts against, and below which prefixes. */
interface Asking {
  readonly principal: string;
  readonly domain: string;
}

/** See the head of the file. */
export class LeaseState {
  /** Raft index of the last entry applied. */
  index: number;
  readonly start: number;
  readonly base: number;
  /** Replaced by each entry that changes them. */
  limits: StateLimits;
  forgotten: number;
  holding: boolean;
  /** By domain or slot. */
  readonly live = new Map<string, Live>();
  /** Everybody who waits for anything, in the order in which they came. */
  waiting: Waiter[] = [];
  /** Domains and slots that are closed. */
  readonly closed = new Map<string, CoolDown>();
  /** Names whose slots are counted. */
  readonly counting = new Map<string, CountingName>();
  readonly ids = new Map<string, Known>();
  /** In the order of their ends. */
  over: Over[] = [];

  constructor(history: { readonly start: number; readonly base: number }, index: number, summary: StateSummary) {
    this.start = history.start;
    this.base = history.base;
    this.index = index;
    this.limits = summary.limits;
    this.forgotten = summary.forgotten;
    this.holding = summary.holding;
  }

  get revision(): number {
    return this.base + this.index - this.start;
  }

  get summary(): StateSummary {
    const { forgotten, holding, limits } = this;
    return { forgotten: forgotten as StateSummary['forgotten'], holding, limits };
  }

  /** Fills in what a table holds. */
  load(records: Iterable<StateRecord>): void {
    for (const record of records) {
      switch (record.type) {
        case 'finished':
          this.over.push(...record.requests.filter((request) => request.finishedAt > this.forgotten));
          break;
        case 'domain': {
          const { checkpointLeftMs: leftMs, ...lease } = record.lease;
          const live: Live = { ...lease, leftMs, checkpointed: this.index, voided: undefined };
          this.live.set(live.domain, live);
          this.ids.set(live.requestId, live);
          break;
        }
        case 'waiter':
          this.waiting.push(record.waiter);
          this.ids.set(record.waiter.requestId, record.waiter);
          break;
        case 'coolDown':
          this.closed.set(record.domain, record.coolDown);
          break;
        case 'counting':
          this.counting.set(record.domain, record.counting);
      }
    }
    this.waiting.sort((left, right) => left.queuedAt - right.queuedAt);
    this.over.sort((left, right) => left.finishedAt - right.finishedAt);
    for (const request of this.over) this.ids.set(request.requestId, request);
  }

  /** Fills in what `other` holds. */
  copyFrom(other: LeaseState): void {
    for (const lease of other.live.values()) {
      const own = { ...lease };
      this.live.set(own.domain, own);
      this.ids.set(own.requestId, own);
    }
    for (const [name, counting] of other.counting) this.counting.set(name, counting);
    for (const [domain, coolDown] of other.closed) this.closed.set(domain, coolDown);
    this.waiting = [...other.waiting];
    this.over = [...other.over];
    for (const request of [...this.waiting, ...this.over]) this.ids.set(request.requestId, request);
  }

  /** How (domain, token), which does not live, ended. */
  endOf({ domain, token }: { readonly domain: string; readonly token: number }): EndedView {
    const request = this.over.find((each) => each.token === token && each.domain === domain);
    if (request !== undefined) return this.viewOf(request);
    let reason: EndReason = 'unspecified';
    if (token <= this.base) reason = 'earlier_history';
    else if (token > this.forgotten) reason = 'never_granted';
    return { lease: { domain, token } as LeaseRef, reason, by: '', note: '', currentToken: this.tokenOf(domain) };
  }

  viewOf({ domain, token, reason, by, note }: Over): EndedView {
    const lease = token === undefined ? undefined : { domain, token };
    return { lease, reason, by, note, currentToken: this.tokenOf(domain) };
  }

  /** Who waits for `name`, first come first. */
  queueOf(name: string): readonly Waiter[] {
    return this.waiting.filter(({ domain }) => domain === name);
  }

  /** What may be granted to somebody who asks for `name`: itself, or each of its slots, the lowest first. */
  placesOf(name: string): readonly string[] {
    const slots = this.counting.get(name)?.slots;
    return slots === undefined ? [name] : Array.from({ length: slots }, (_, at) => `${name}#${at}`);
  }

  /** The first place of `name` that nobody holds and that is not closed. */
  freePlace(name: string): string | undefined {
    return this.placesOf(name).find((place) => !this.live.has(place) && !this.closed.has(place));
  }

  /** True when no place of `name` is free and at least one is closed. */
  coolsDown(name: string): boolean {
    return this.isTaken(name) && this.placesOf(name).some((place) => this.closed.has(place));
  }

  /** True when each place of `name` is held or closed. */
  isTaken(name: string): boolean {
    return this.freePlace(name) === undefined;
  }

  /** The first lease that stands in the way of whoever wants `name`. */
  inTheWay(name: string): Live | undefined {
    for (const place of this.placesOf(name)) {
      const lease = this.live.get(place);
      if (lease !== undefined) return lease;
    }
    return undefined;
  }

  tokenOf(domain: string): EndedView['currentToken'] {
    return this.live.get(domain)?.token ?? ZERO_REVISION;
  }

  find({ domain, token }: { readonly domain: string; readonly token: number }): Live | undefined {
    const lease = this.live.get(domain);
    return lease?.token === token ? lease : undefined;
  }

  /** A name is exclusive or counting, never both, and has one number of slots for good. */
  isOtherwise(name: string, slots: number): boolean {
    const known = this.counting.get(name);
    if (known !== undefined) return known.slots !== slots;
    const exclusive = this.live.has(name) || this.closed.has(name) || this.queueOf(name).length > 0;
    return slots > 1 && exclusive;
  }

  /** True when one more lease would be more than whoever asks for it, or a prefix of what is asked for, may have. */
  isFullOfLeases(asked: Asking): boolean {
    return this.#hasAll(asked) || this.#isFullBelow(asked, 'leases', [...this.live.values()]);
  }

  /** Likewise for one more waiter, which may become a lease. */
  isFullOfWaiters(asked: Asking): boolean {
    const own = this.waiting.filter(({ principal }) => principal === asked.principal);
    if (own.length >= this.limits.waitersPerPrincipal) return true;
    return this.#hasAll(asked) || this.#isFullBelow(asked, 'waiters', this.waiting);
  }

  /** Likewise for one more counting name: whoever begins one leaves as many to others as it has itself. */
  isFullOfNames({ principal }: Asking): boolean {
    const left = this.limits.countingNames - this.counting.size;
    const own = [...this.counting.values()].filter((each) => each.principal === principal);
    return left <= 0 || own.length >= left;
  }

  #hasAll(asked: Asking): boolean {
    const own = [...this.live.values(), ...this.waiting].filter(({ principal }) => principal === asked.principal);
    return own.length >= this.limits.leasesPerPrincipal;
  }

  #isFullBelow(asked: Asking, what: 'leases' | 'waiters', has: readonly Asking[]): boolean {
    return this.limits.prefixes.some((quota) => {
      const below = has.filter(({ domain }) => domain.startsWith(quota.prefix)).length;
      return asked.domain.startsWith(quota.prefix) && below >= quota[what];
    });
  }

  /** The field in which an Acquire is not what its id stands for. */
  difference(
    known: Known,
    command: Pick<Waiter, 'owner' | 'domain' | 'ttlMs' | 'holder' | 'coolDownMs' | 'slots'>,
  ): string | undefined {
    if (known.owner !== '' && known.owner !== command.owner) return 'owner';
    if (nameOf(known.domain) !== command.domain) return 'domain';
    const asked = 'finishedAt' in known ? known.asked : known;
    if (asked === undefined) return undefined;
    if (asked.ttlMs !== command.ttlMs) return 'ttl_ms';
    if (asked.holder !== command.holder) return 'holder';
    if (asked.coolDownMs !== command.coolDownMs) return 'cool_down_ms';
    const slots = 'slots' in asked ? asked.slots : this.slotsOf(known.domain);
    return slots === command.slots ? undefined : 'slots';
  }

  slotsOf(domain: string): number {
    return this.counting.get(nameOf(domain))?.slots ?? 1;
  }
}

/** What somebody asked for who was granted `domain`: itself, or the name in front of the number of a slot. */
export function nameOf(domain: string): string {
  return domain.split('#')[0] ?? domain;
}
