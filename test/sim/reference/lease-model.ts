/**
 * The lease state machine once more, from the text of design 7 and as plain as it can be: what each command does to the
 * domains, to those who wait, and to the request ids. Nothing of `src/lease` runs here: every question is a walk over
 * lists.
 */
import type { EndedView } from '../../../src/base/api.js';
import { ZERO_REVISION } from '../../../src/base/revision.js';
import type { Command, Passing } from '../../../src/lease/commands.js';
import type { CoolDown, RefusalReason, StateLimits, Waiter } from '../../../src/lease/types.js';
import type { Loaded } from '../../../src/replica/types.js';
import { LeaseState, nameOf } from './lease-state.js';
import type { Live, Over } from './lease-state.js';

/** What an entry came to, for whoever asked for it. */
export type Outcome =
  | { readonly type: 'granted'; readonly token: number }
  | { readonly type: 'queued' }
  | { readonly type: 'notGranted'; readonly reason: RefusalReason; readonly token: number }
  | { readonly type: 'overQuota' }
  | { readonly type: 'ended'; readonly ended: EndedView }
  | { readonly type: 'tooOld' }
  | { readonly type: 'reused'; readonly field: string }
  | { readonly type: 'released'; readonly released: boolean; readonly ended: EndedView | undefined }
  | { readonly type: 'withdrawn' }
  | { readonly type: 'forceReleased'; readonly released: boolean; readonly currentToken: number }
  | { readonly type: 'limitsChanged'; readonly before: StateLimits; readonly after: StateLimits }
  | { readonly type: 'done' };

type CommandOf<Type extends Command['type']> = Extract<Command, { readonly type: Type }>;

const DONE: Outcome = { type: 'done' };

/** See the head of the file. */
export class LeaseModel extends LeaseState {
  /** What the last entry granted. */
  granted: Live[] = [];
  /** Who left a queue by the last entry, granted or not. */
  left: Waiter[] = [];
  /** Domains and slots, names with their queues, and ids that changed since somebody emptied it. */
  readonly touched = new Set<string>();
  readonly touchedNames = new Set<string>();
  readonly touchedIds = new Set<string>();

  copy(): LeaseModel {
    const copy = new LeaseModel(this, this.index, this.summary);
    copy.copyFrom(this);
    return copy;
  }

  /** The next entry, of `term`; a no-op and a configuration are no command. */
  apply(term: number, command: Command | undefined): Outcome {
    this.index++;
    this.granted = [];
    this.left = [];
    if (command === undefined) return DONE;
    const outcome = this.#carryOut(term, command);
    this.#forget();
    return outcome;
  }

  #carryOut(term: number, command: Command): Outcome {
    switch (command.type) {
      case 'acquire':
        return this.#acquire(command);
      case 'withdraw':
        return this.#withdraw(command);
      case 'release':
        return this.#release(command);
      case 'forceRelease': {
        const lease = this.find(command);
        if (lease === undefined) {
          return { type: 'forceReleased', released: false, currentToken: this.tokenOf(command.domain) };
        }
        this.#end(lease, 'force_released', command.by, command.note);
        this.#handOver([command.domain], [command], command.atUnixMs);
        return { type: 'forceReleased', released: true, currentToken: ZERO_REVISION };
      }
      case 'limits': {
        const before = this.limits;
        this.limits = { ...before, ...command.change };
        return { type: 'limitsChanged', before, after: this.limits };
      }
      case 'expire':
        if (command.term === term) this.#expire(command);
        return DONE;
      case 'endWait':
        if (command.term === term) this.#endWait(command);
        return DONE;
      case 'endCoolDown': {
        if (command.term !== term) return DONE;
        const over = command.domains.filter(({ domain, since }) => this.closed.get(domain)?.since === since);
        for (const { domain } of over) {
          this.closed.delete(domain);
          this.touched.add(domain);
        }
        this.#handOver(
          over.map(({ domain }) => domain),
          command.domains,
          command.atUnixMs,
        );
        return DONE;
      }
      case 'checkpoint':
        for (const key of command.leases) {
          const lease = this.#mark(key, key.leftMs);
          if (lease !== undefined) lease.checkpointed = this.index;
        }
        return DONE;
      case 'void':
        for (const key of command.leases) {
          const lease = this.#mark(key, undefined);
          if (lease !== undefined) lease.voided = { index: this.index, term };
        }
        return DONE;
      case 'endHold':
        if (command.term === term) this.holding = false;
        return DONE;
    }
  }

  #acquire(command: CommandOf<'acquire'>): Outcome {
    const { requestId, domain, slots, atUnixMs } = command;
    const known = this.ids.get(requestId);
    const place = this.holding ? undefined : this.freePlace(domain);
    if (known !== undefined) {
      const field = this.difference(known, command);
      if (field !== undefined) return { type: 'reused', field };
      if ('version' in known) return { type: 'granted', token: known.token };
      if ('finishedAt' in known) return { type: 'ended', ended: this.viewOf(known) };
      if (place === undefined) return { type: 'queued' };
      this.#leave(known);
      return this.#grant(place, known, atUnixMs);
    }
    if (command.seenRevision < this.forgotten) return { type: 'tooOld' };
    if (this.isOtherwise(domain, slots)) return this.#refuse(domain, 'slots_differ');
    const begins = slots > 1 && !this.counting.has(domain);
    if (place === undefined) return this.#queue(command, begins);
    if ((begins && this.isFullOfNames(command)) || this.isFullOfLeases(command)) return { type: 'overQuota' };
    if (begins) {
      this.counting.set(domain, { name: domain, slots, principal: command.principal });
      this.touchedNames.add(domain);
    }
    return this.#grant(begins ? `${domain}#0` : place, command, atUnixMs);
  }

  #queue(command: CommandOf<'acquire'>, begins: boolean): Outcome {
    const { domain, requestId, waitMs } = command;
    if (waitMs === 0) return this.#refuse(domain, this.#whyNot(domain));
    if (begins) return this.#refuse(domain, 'recovering');
    if (this.queueOf(domain).length >= this.limits.queue) return this.#refuse(domain, 'queue_full');
    if (this.isFullOfWaiters(command)) return { type: 'overQuota' };
    const { holder, ttlMs, coolDownMs, slots, metadata, owner, principal, atUnixMs: queuedAtUnixMs } = command;
    const queuedAt = this.revision as Waiter['queuedAt'];
    const asked = { domain, requestId, holder, ttlMs, waitMs, coolDownMs, slots, metadata, owner, principal };
    const waiter: Waiter = { ...asked, queuedAt, queuedAtUnixMs };
    this.waiting.push(waiter);
    this.ids.set(requestId, waiter);
    this.touchedNames.add(domain);
    this.touchedIds.add(requestId);
    return { type: 'queued' };
  }

  #whyNot(name: string): RefusalReason {
    if (this.holding) return 'recovering';
    return this.inTheWay(name) === undefined ? 'cool_down' : 'held';
  }

  #refuse(name: string, reason: RefusalReason): Outcome {
    return { type: 'notGranted', reason, token: this.inTheWay(name)?.token ?? 0 };
  }

  #grant(
    place: string,
    asked: Pick<Waiter, 'requestId' | 'holder' | 'metadata' | 'ttlMs' | 'coolDownMs' | 'owner' | 'principal'>,
    grantedAtUnixMs: number,
  ): Outcome {
    const { requestId, holder, metadata, ttlMs, coolDownMs, owner, principal } = asked;
    const token = this.revision as Live['token'];
    const about = { domain: place as Live['domain'], token, requestId, holder, metadata, ttlMs, coolDownMs };
    const whose = { grantedAtUnixMs, owner, principal };
    const lease: Live = { ...about, ...whose, version: 0, leftMs: undefined, checkpointed: 0, voided: undefined };
    this.live.set(place, lease);
    this.ids.set(requestId, lease);
    this.granted.push(lease);
    this.#touch(lease);
    return { type: 'granted', token };
  }

  /**
   * Whatever is free now of the names of `freed` goes to who waits for it and is not passed over by any list of the entry:
   * first come first, lowest slot first.
   */
  #handOver(freed: readonly string[], lists: readonly Passing[], atUnixMs: number): void {
    if (this.holding) return;
    const detached = lists.flatMap((list) => list.detached);
    for (const domain of freed) {
      const name = nameOf(domain);
      for (;;) {
        const place = this.freePlace(name);
        const next = this.queueOf(name).find(({ requestId }) => !detached.includes(requestId));
        if (place === undefined || next === undefined) break;
        this.#leave(next);
        this.#grant(place, next, atUnixMs);
      }
    }
  }

  #leave(waiter: Waiter): void {
    this.waiting = this.waiting.filter((each) => each !== waiter);
    this.left.push(waiter);
    this.touchedNames.add(waiter.domain);
    this.touchedIds.add(waiter.requestId);
  }

  #expire(command: CommandOf<'expire'>): void {
    const freed: string[] = [];
    for (const key of command.leases) {
      const lease = this.find(key);
      if (lease?.version !== key.version) continue;
      this.#end(lease, 'expired');
      const { domain, coolDownMs: ms } = lease;
      if (ms > 0) this.closed.set(domain, { domain, since: this.revision as CoolDown['since'], ms });
      else freed.push(domain);
    }
    this.#handOver(freed, command.leases, command.atUnixMs);
  }

  #endWait(command: CommandOf<'endWait'>): void {
    const freed: string[] = [];
    for (const { requestId } of command.waits) {
      const known = this.ids.get(requestId);
      if (known === undefined || 'finishedAt' in known) continue;
      if ('version' in known) {
        this.#end(known, 'left_queue');
        freed.push(known.domain);
      } else this.#endWaiter(known, 'left_queue');
    }
    this.#handOver(freed, command.waits, command.atUnixMs);
  }

  #endWaiter(waiter: Waiter, reason: 'withdrawn' | 'left_queue'): void {
    const { requestId, domain, owner, ttlMs, holder, coolDownMs, slots } = waiter;
    this.#leave(waiter);
    const asked = { ttlMs, holder, coolDownMs, slots };
    this.#remember({ requestId, domain, token: undefined, reason, by: '', note: '', owner, asked });
  }

  #withdraw(command: CommandOf<'withdraw'>): Outcome {
    const { requestId, domain, owner } = command;
    const known = this.ids.get(requestId);
    if (known === undefined) {
      const nothing = { token: undefined, by: '', note: '', asked: undefined };
      this.#remember({ requestId, domain, ...nothing, reason: 'withdrawn', owner });
      return { type: 'withdrawn' };
    }
    if (known.owner !== '' && known.owner !== owner) return { type: 'reused', field: 'owner' };
    if (nameOf(known.domain) !== domain) return { type: 'reused', field: 'domain' };
    if ('version' in known) {
      this.#end(known, 'withdrawn');
      this.#handOver([command.domain], [command], command.atUnixMs);
    } else if (!('finishedAt' in known)) this.#endWaiter(known, 'withdrawn');
    return { type: 'withdrawn' };
  }

  #release(command: CommandOf<'release'>): Outcome {
    const lease = this.find(command);
    const over = this.over.find((each) => each.token === command.token && each.domain === command.domain);
    const owner = lease?.owner ?? over?.owner ?? '';
    if (owner !== '' && owner !== command.owner) return { type: 'reused', field: 'owner' };
    if (lease !== undefined) {
      this.#end(lease, 'released');
      this.#handOver([command.domain], [command], command.atUnixMs);
    } else if (over?.reason !== 'released') return { type: 'released', released: false, ended: this.endOf(command) };
    return { type: 'released', released: true, ended: undefined };
  }

  #mark(key: { readonly domain: string; readonly token: number }, leftMs: number | undefined): Live | undefined {
    const lease = this.find(key);
    if (lease === undefined) return undefined;
    lease.version++;
    lease.leftMs = leftMs;
    this.#touch(lease);
    return lease;
  }

  #end(lease: Live, reason: Over['reason'], by = '', note = ''): void {
    const { requestId, domain, token, owner, ttlMs, holder, coolDownMs } = lease;
    this.live.delete(domain);
    this.touched.add(domain);
    const asked = { ttlMs, holder, coolDownMs, slots: this.slotsOf(domain) };
    this.#remember({ requestId, domain, token, reason, by, note, owner, asked });
  }

  #remember(request: Omit<Over, 'finishedAt'>): void {
    const over: Over = { ...request, finishedAt: this.revision as Over['finishedAt'] };
    this.over.push(over);
    this.ids.set(over.requestId, over);
    this.touchedIds.add(over.requestId);
  }

  /** The oldest go, all of one revision together, while at least as many remain as are to be kept. */
  #forget(): void {
    const keep = this.limits.finishedRequests;
    while (this.over.length > keep) {
      const oldest = this.over[0]?.finishedAt;
      const gone = this.over.filter(({ finishedAt }) => finishedAt === oldest);
      if (oldest === undefined || this.over.length - gone.length < keep) return;
      this.over = this.over.slice(gone.length);
      for (const { requestId } of gone) {
        this.ids.delete(requestId);
        this.touchedIds.add(requestId);
      }
      this.forgotten = oldest;
    }
  }

  #touch({ domain, requestId }: Pick<Live, 'domain' | 'requestId'>): void {
    this.touched.add(domain);
    this.touchedIds.add(requestId);
  }
}

/** The state that a disk held at a start. */
export function stateOnDisk({ genesis, snapshot, summary, records }: Loaded): LeaseModel {
  const model = new LeaseModel(genesis.history, snapshot.index, summary);
  model.load(records);
  return model;
}
