/**
 * The lease rules written down a second time, with plain arrays and nothing to be fast with, to compare `apply` with.
 * It also keeps what a real state forgets: every grant there ever was.
 */
import type { EndedView } from '../../src/base/api.js';
import type { Domain, RequestId } from '../../src/base/ids.js';
import type { Revision } from '../../src/base/revision.js';
import { ZERO_REVISION } from '../../src/base/revision.js';
import type { Command, CommandOf, LeaseKey, Passing } from '../../src/lease/commands.js';
import type {
  Asked,
  CoolDown,
  CountingName,
  FinishedRequest,
  Lease,
  Result,
  StateLimits,
  StateSummary,
  Waiter,
} from '../../src/lease/types.js';
import { BASE } from './kit.js';

type Reason = FinishedRequest['reason'];
const DONE: Result = { type: 'done' };

export class Model {
  leases: Lease[] = [];
  /** All queues in one list, in the order in which they came. */
  waiters: Waiter[] = [];
  coolDowns: CoolDown[] = [];
  counting: CountingName[] = [];
  finished: FinishedRequest[] = [];
  forgotten = ZERO_REVISION;
  holding: boolean;
  revision = BASE;
  readonly everGranted: Lease[] = [];
  limits: StateLimits;

  constructor({ holding, limits }: StateSummary) {
    this.holding = holding;
    this.limits = limits;
  }

  apply(term: number, command: Command | undefined): Result {
    this.revision = (this.revision + 1) as Revision;
    const result = command === undefined ? DONE : this.dispatch(term, command);
    this.evict();
    return result;
  }

  private dispatch(term: number, command: Command): Result {
    if ('term' in command && command.term !== term) return DONE;
    switch (command.type) {
      case 'acquire':
        return this.acquire(command);
      case 'withdraw':
        return this.withdraw(command);
      case 'release':
        return this.release(command);
      case 'forceRelease':
        return this.forceRelease(command);
      case 'limits': {
        const before = this.limits;
        this.limits = { ...before, ...command.change };
        return { type: 'limitsChanged', before, after: this.limits };
      }
      case 'expire':
        this.expire(command);
        return DONE;
      case 'endWait':
        this.endWait(command);
        return DONE;
      case 'endCoolDown':
        this.endCoolDown(command);
        return DONE;
      case 'checkpoint':
        for (const key of command.leases) this.mark(key, key.leftMs);
        return DONE;
      case 'void':
        for (const key of command.leases) this.mark(key, undefined);
        return DONE;
      case 'endHold':
        this.holding = false;
        return DONE;
    }
  }

  private acquire(command: CommandOf<'acquire'>): Result {
    const { domain: name, requestId, slots } = command;
    const lease = this.leases.find((one) => one.requestId === requestId);
    const waiter = this.waiters.find((one) => one.requestId === requestId);
    const over = this.finished.find((one) => one.requestId === requestId);
    const known = lease ?? waiter ?? over;
    if (known !== undefined) {
      const asked = lease !== undefined ? this.asked(lease) : (waiter ?? over?.asked);
      const difference = differenceOf(known, asked, command);
      if (difference !== undefined) return { type: 'reused', difference };
    }
    if (lease !== undefined) return { type: 'granted', lease };
    if (over !== undefined) return { type: 'ended', ended: this.endedView(over) };
    const [place] = this.holding ? [] : this.free(name, waiter === undefined ? slots : waiter.slots);
    if (waiter !== undefined) {
      if (place === undefined) return { type: 'queued', waiter, current: this.inTheWay(name) };
      return { type: 'granted', lease: this.grantWaiter(place, waiter, command.atUnixMs) };
    }
    if (command.seenRevision < this.forgotten) return { type: 'tooOld', forgotten: this.forgotten };
    const counts = this.slotsOf(name);
    const inUse = [...this.leases, ...this.coolDowns, ...this.waiters].some((one) => one.domain === name);
    if (counts === undefined ? slots > 1 && inUse : counts !== slots) return this.refused(name, 'slots_differ');
    if (place === undefined) return this.join(command);
    const begins = counts === undefined && slots > 1;
    const { countingNames: limit } = this.limits;
    const { principal } = command;
    const left = limit - this.counting.length;
    const own = this.counting.filter((one) => one.principal === principal).length;
    if (begins && left <= 0) return { type: 'overQuota', of: 'this cluster', what: 'counting names', limit };
    if (begins && own >= left) return { type: 'overQuota', of: principal, what: 'counting names', limit: own };
    const refusal = this.overLeases(command) ?? this.overPrefix('leases', this.leases, command);
    if (refusal !== undefined) return refusal;
    if (begins) this.counting.push({ name, slots, principal });
    return { type: 'granted', lease: this.grant(place, command, command.atUnixMs) };
  }

  /** Nothing is free of what an unknown id asks for. */
  private join(command: CommandOf<'acquire'>): Result {
    const { domain: name, requestId, holder, metadata, ttlMs, coolDownMs, slots, waitMs, owner, principal } = command;
    const current = this.inTheWay(name);
    if (waitMs === 0) {
      return this.refused(name, this.holding ? 'recovering' : current === undefined ? 'cool_down' : 'held');
    }
    if (slots > 1 && this.slotsOf(name) === undefined) return this.refused(name, 'recovering');
    if (this.queue(name).length >= this.limits.queue) return this.refused(name, 'queue_full');
    const refusal =
      this.overPrincipal('waiters', this.waiters, this.limits.waitersPerPrincipal, command) ??
      this.overLeases(command) ??
      this.overPrefix('waiters', this.waiters, command);
    if (refusal !== undefined) return refusal;
    const waiter: Waiter = {
      ...{ domain: name, requestId, holder, metadata, ttlMs, coolDownMs, slots, waitMs, owner, principal },
      ...{ queuedAt: this.revision, queuedAtUnixMs: command.atUnixMs },
    };
    this.waiters.push(waiter);
    return { type: 'queued', waiter, current };
  }

  private withdraw({ requestId, domain: name, owner, detached, atUnixMs }: CommandOf<'withdraw'>): Result {
    const lease = this.leases.find((one) => one.requestId === requestId);
    const waiter = this.waiters.find((one) => one.requestId === requestId);
    const known = lease ?? waiter ?? this.finished.find((one) => one.requestId === requestId);
    if (known === undefined) this.remember({ requestId, domain: name, owner }, 'withdrawn', undefined, undefined);
    else if (known.owner !== '' && known.owner !== owner) return { type: 'reused', difference: 'owner' };
    else if (bare(known.domain) !== name) return { type: 'reused', difference: 'domain' };
    if (waiter !== undefined) this.leave(waiter, 'withdrawn');
    if (lease !== undefined) {
      this.end(lease, 'withdrawn');
      this.handOver([name], [{ detached }], atUnixMs);
    }
    return { type: 'withdrawn' };
  }

  private release(command: CommandOf<'release'>): Result {
    const lease = this.live(command);
    const over = this.over(command);
    const owner = lease?.owner ?? over?.owner ?? '';
    if (owner !== '' && owner !== command.owner) return { type: 'reused', difference: 'owner' };
    if (lease === undefined && over?.reason !== 'released') {
      return { type: 'released', released: false, ended: this.describeEnd(command) };
    }
    if (lease !== undefined) {
      this.end(lease, 'released');
      this.handOver([bare(lease.domain)], [command], command.atUnixMs);
    }
    return { type: 'released', released: true, ended: undefined };
  }

  private forceRelease(command: CommandOf<'forceRelease'>): Result {
    const lease = this.live(command);
    if (lease === undefined) {
      return { type: 'forceReleased', released: false, currentToken: this.current(command.domain) };
    }
    this.end(lease, 'force_released', command.by, command.note);
    this.handOver([bare(lease.domain)], [command], command.atUnixMs);
    return { type: 'forceReleased', released: true, currentToken: ZERO_REVISION };
  }

  private expire({ leases, atUnixMs }: CommandOf<'expire'>): void {
    const freed: Domain[] = [];
    for (const key of leases) {
      const lease = this.live(key);
      if (lease?.version !== key.version) continue;
      this.end(lease, 'expired');
      const { domain, coolDownMs: ms } = lease;
      if (ms > 0) this.coolDowns.push({ domain, since: this.revision, ms });
      else freed.push(bare(domain));
    }
    this.handOver(freed, leases, atUnixMs);
  }

  private endWait({ waits, atUnixMs }: CommandOf<'endWait'>): void {
    const freed: Domain[] = [];
    for (const { requestId } of waits) {
      const waiter = this.waiters.find((one) => one.requestId === requestId);
      if (waiter !== undefined) this.leave(waiter, 'left_queue');
      const lease = this.leases.find((one) => one.requestId === requestId);
      if (lease === undefined) continue;
      this.end(lease, 'left_queue');
      freed.push(bare(lease.domain));
    }
    this.handOver(freed, waits, atUnixMs);
  }

  private endCoolDown({ domains, atUnixMs }: CommandOf<'endCoolDown'>): void {
    const freed: Domain[] = [];
    for (const { domain, since } of domains) {
      const closed = this.coolDowns.find((one) => one.domain === domain && one.since === since);
      if (closed === undefined) continue;
      this.coolDowns = this.coolDowns.filter((one) => one !== closed);
      freed.push(bare(domain));
    }
    this.handOver(freed, domains, atUnixMs);
  }

  /** Whoever is in one of the lists is passed over. */
  private handOver(freed: readonly Domain[], lists: readonly Passing[], atUnixMs: number): void {
    if (this.holding) return;
    for (const name of freed) {
      for (const place of this.free(name, 1)) {
        const waiter = this.queue(name).find((one) => !lists.some((list) => list.detached.includes(one.requestId)));
        if (waiter !== undefined) this.grantWaiter(place, waiter, atUnixMs);
      }
    }
  }

  private grantWaiter(place: Domain, waiter: Waiter, atUnixMs: number): Lease {
    this.waiters = this.waiters.filter((one) => one !== waiter);
    return this.grant(place, waiter, atUnixMs);
  }

  private grant(place: Domain, asked: Waiter | CommandOf<'acquire'>, grantedAtUnixMs: number): Lease {
    const { requestId, holder, metadata, ttlMs, coolDownMs, owner, principal } = asked;
    const lease: Lease = {
      ...{ domain: place, requestId, holder, metadata, ttlMs, coolDownMs, owner, principal, grantedAtUnixMs },
      ...{ token: this.revision, version: 0, checkpointLeftMs: undefined },
    };
    this.leases.push(lease);
    this.everGranted.push(lease);
    return lease;
  }

  private refused(name: Domain, reason: 'held' | 'recovering' | 'queue_full' | 'cool_down' | 'slots_differ'): Result {
    return { type: 'notGranted', reason, current: this.inTheWay(name) };
  }

  private overLeases(command: CommandOf<'acquire'>): Result | undefined {
    const both = [...this.leases, ...this.waiters];
    return this.overPrincipal('leases and waiters', both, this.limits.leasesPerPrincipal, command);
  }

  private overPrincipal(
    what: 'waiters' | 'leases and waiters',
    all: readonly (Lease | Waiter)[],
    limit: number,
    { principal }: { readonly principal: string },
  ): Result | undefined {
    const own = all.filter((one) => one.principal === principal).length;
    return own >= limit ? { type: 'overQuota', of: principal, what, limit } : undefined;
  }

  private overPrefix(
    what: 'leases' | 'waiters',
    all: readonly (Lease | Waiter)[],
    { domain }: { readonly domain: Domain },
  ): Result | undefined {
    for (const { prefix, [what]: most } of this.limits.prefixes) {
      const below = all.filter((one) => one.domain.startsWith(prefix)).length;
      if (domain.startsWith(prefix) && below >= most) {
        return { type: 'overQuota', of: `prefix ${prefix}`, what, limit: most };
      }
    }
    return undefined;
  }

  /** Who waits for `name`, in order. */
  queue(name: Domain): Waiter[] {
    return this.waiters.filter((one) => one.domain === name);
  }

  private slotsOf(name: Domain): number | undefined {
    return this.counting.find((one) => one.name === name)?.slots;
  }

  /** What there is of `name`, lowest first: itself or its slots; as many as are asked for if it does not count yet. */
  private places(name: Domain, asked: number): Domain[] {
    const slots = this.slotsOf(name) ?? asked;
    if (slots === 1) return [name];
    return Array.from({ length: slots }, (_, number) => `${name}#${number}` as Domain);
  }

  private free(name: Domain, asked: number): Domain[] {
    const taken = [...this.leases, ...this.coolDowns].map((one) => one.domain);
    return this.places(name, asked).filter((place) => !taken.includes(place));
  }

  private inTheWay(name: Domain): Lease | undefined {
    const places = this.places(name, 1);
    for (const place of places) {
      const lease = this.leases.find((one) => one.domain === place);
      if (lease !== undefined) return lease;
    }
    return undefined;
  }

  describeEnd(key: LeaseKey): EndedView {
    const over = this.over(key);
    if (over !== undefined) return this.endedView(over);
    const { domain, token } = key;
    const reason = token <= BASE ? 'earlier_history' : token > this.forgotten ? 'never_granted' : 'unspecified';
    return { lease: { domain, token }, reason, by: '', note: '', currentToken: this.current(domain) };
  }

  private endedView({ domain, token, reason, by, note }: FinishedRequest): EndedView {
    const lease = token === undefined ? undefined : { domain, token };
    return { lease, reason, by, note, currentToken: this.current(domain) };
  }

  /** The lease (domain, token) if it lives. */
  live({ domain, token }: LeaseKey): Lease | undefined {
    return this.leases.find((one) => one.domain === domain && one.token === token);
  }

  private over({ domain, token }: LeaseKey): FinishedRequest | undefined {
    return this.finished.find((one) => one.domain === domain && one.token === token);
  }

  private current(domain: Domain): Revision {
    return this.leases.find((one) => one.domain === domain)?.token ?? ZERO_REVISION;
  }

  private mark(key: LeaseKey, checkpointLeftMs: number | undefined): void {
    const lease = this.live(key);
    this.leases = this.leases.map((one) =>
      one === lease ? { ...one, version: one.version + 1, checkpointLeftMs } : one,
    );
  }

  private end(lease: Lease, reason: Reason, by = '', note = ''): void {
    this.leases = this.leases.filter((one) => one !== lease);
    this.remember(lease, reason, lease.token, this.asked(lease), by, note);
  }

  private leave(waiter: Waiter, reason: Reason): void {
    this.waiters = this.waiters.filter((one) => one !== waiter);
    const { ttlMs, holder, coolDownMs, slots } = waiter;
    this.remember(waiter, reason, undefined, { ttlMs, holder, coolDownMs, slots });
  }

  private asked({ domain, ttlMs, holder, coolDownMs }: Lease): Asked {
    return { ttlMs, holder, coolDownMs, slots: this.slotsOf(bare(domain)) ?? 1 };
  }

  private remember(
    { requestId, domain, owner }: { readonly requestId: RequestId; readonly domain: Domain; readonly owner: string },
    reason: Reason,
    token: Revision | undefined,
    asked: Asked | undefined,
    by = '',
    note = '',
  ): void {
    this.finished.push({ requestId, domain, finishedAt: this.revision, token, reason, by, note, owner, asked });
  }

  private evict(): void {
    for (;;) {
      const oldest = Math.min(...this.finished.map((one) => one.finishedAt));
      const younger = this.finished.filter((one) => one.finishedAt !== oldest);
      if (younger.length < this.limits.finishedRequests) return;
      this.finished = younger;
      this.forgotten = oldest as Revision;
    }
  }
}

function differenceOf(
  known: { readonly owner: string; readonly domain: Domain },
  asked: Asked | undefined,
  command: CommandOf<'acquire'>,
): string | undefined {
  if (known.owner !== '' && known.owner !== command.owner) return 'owner';
  if (bare(known.domain) !== command.domain) return 'domain';
  const fields = { ttlMs: 'ttl_ms', holder: 'holder', coolDownMs: 'cool_down_ms', slots: 'slots' } as const;
  for (const field of ['ttlMs', 'holder', 'coolDownMs', 'slots'] as const) {
    if (asked !== undefined && asked[field] !== command[field]) return fields[field];
  }
  return undefined;
}

/** A slot's name without its number. */
function bare(domain: Domain): Domain {
  return domain.replace(/#.*$/, '') as Domain;
}
