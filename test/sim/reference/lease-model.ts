/**
 * The lease state machine once more, from the text of design 7 and as plain as it can be: what each command does to the
 * domains and to the request ids. Nothing of `src/lease` runs here.
 */
import type { EndedView, EndReason, LeaseRef } from '../../../src/base/api.js';
import { ZERO_REVISION } from '../../../src/base/revision.js';
import type { Command } from '../../../src/lease/commands.js';
import type { FinishedRequest, Lease, StateRecord, StateSummary } from '../../../src/lease/types.js';
import type { Loaded } from '../../../src/replica/types.js';

/** A lease that lives. */
export interface Live extends Pick<
  Lease,
  'domain' | 'token' | 'requestId' | 'holder' | 'metadata' | 'ttlMs' | 'grantedAtUnixMs' | 'owner'
> {
  version: number;
  leftMs: number | undefined;
  /** Index of the last Checkpoint that was applied. */
  checkpointed: number;
  /** Index and term of the last Void that was applied. */
  voided: { readonly index: number; readonly term: number } | undefined;
}

/** A request that is over. */
export type Over = Pick<
  FinishedRequest,
  'requestId' | 'domain' | 'finishedAt' | 'token' | 'reason' | 'by' | 'note' | 'owner' | 'asked'
>;

/** What an entry came to, for whoever asked for it. */
export type Outcome =
  | { readonly type: 'granted'; readonly token: number }
  | { readonly type: 'notGranted'; readonly reason: 'held' | 'recovering'; readonly token: number }
  | { readonly type: 'ended'; readonly ended: EndedView }
  | { readonly type: 'tooOld' }
  | { readonly type: 'reused'; readonly field: string }
  | { readonly type: 'released'; readonly released: boolean; readonly ended: EndedView | undefined }
  | { readonly type: 'withdrawn' }
  | { readonly type: 'forceReleased'; readonly released: boolean; readonly currentToken: number }
  | { readonly type: 'done' };

type CommandOf<Type extends Command['type']> = Extract<Command, { readonly type: Type }>;

const DONE: Outcome = { type: 'done' };

/** See the head of the file. */
export class LeaseModel {
  /** Raft index of the last entry applied. */
  index: number;
  readonly start: number;
  readonly base: number;
  readonly keep: number;
  forgotten: number;
  holding: boolean;
  readonly live = new Map<string, Live>();
  readonly ids = new Map<string, Live | Over>();
  /** In the order of their ends. */
  over: Over[] = [];
  /** Domains and ids that changed since somebody emptied it. */
  readonly touched = new Set<string>();
  readonly touchedIds = new Set<string>();

  constructor(history: { readonly start: number; readonly base: number }, index: number, summary: StateSummary) {
    this.start = history.start;
    this.base = history.base;
    this.index = index;
    this.keep = summary.limits.finishedRequests;
    this.forgotten = summary.forgotten;
    this.holding = summary.holding;
  }

  get revision(): number {
    return this.base + this.index - this.start;
  }

  /** Fills in what a table holds. */
  load(records: Iterable<StateRecord>): void {
    for (const record of records) {
      if (record.type === 'finished') {
        this.over.push(...record.requests.filter((request) => request.finishedAt > this.forgotten));
        continue;
      }
      const { checkpointLeftMs: leftMs, ...lease } = record.lease;
      const live: Live = { ...lease, leftMs, checkpointed: this.index, voided: undefined };
      this.live.set(live.domain, live);
      this.ids.set(live.requestId, live);
    }
    this.over.sort((left, right) => left.finishedAt - right.finishedAt);
    for (const request of this.over) this.ids.set(request.requestId, request);
  }

  copy(): LeaseModel {
    const { forgotten, holding, keep: finishedRequests } = this;
    const limits = { finishedRequests };
    const summary: StateSummary = { forgotten: forgotten as StateSummary['forgotten'], holding, limits };
    const copy = new LeaseModel(this, this.index, summary);
    for (const lease of this.live.values()) {
      const own = { ...lease };
      copy.live.set(own.domain, own);
      copy.ids.set(own.requestId, own);
    }
    copy.over = [...this.over];
    for (const request of this.over) copy.ids.set(request.requestId, request);
    return copy;
  }

  /** The next entry, of `term`; a no-op and a configuration are no command. */
  apply(term: number, command: Command | undefined): Outcome {
    this.index++;
    if (command === undefined) return DONE;
    const outcome = this.#carryOut(term, command);
    this.#forget();
    return outcome;
  }

  /** How (domain, token), which does not live, ended. */
  endOf({ domain, token }: { readonly domain: string; readonly token: number }): EndedView {
    const request = this.over.find((each) => each.token === token && each.domain === domain);
    if (request !== undefined) return this.viewOf(request);
    let reason: EndReason = 'unspecified';
    if (token <= this.base) reason = 'earlier_history';
    else if (token > this.forgotten) reason = 'never_granted';
    return { lease: { domain, token } as LeaseRef, reason, by: '', note: '', currentToken: this.#tokenOf(domain) };
  }

  viewOf({ domain, token, reason, by, note }: Over): EndedView {
    const lease = token === undefined ? undefined : { domain, token };
    return { lease, reason, by, note, currentToken: this.#tokenOf(domain) };
  }

  #tokenOf(domain: string): EndedView['currentToken'] {
    return this.live.get(domain)?.token ?? ZERO_REVISION;
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
        const lease = this.#find(command);
        if (lease === undefined) {
          return { type: 'forceReleased', released: false, currentToken: this.#tokenOf(command.domain) };
        }
        this.#end(lease, 'force_released', command.by, command.note);
        return { type: 'forceReleased', released: true, currentToken: ZERO_REVISION };
      }
      case 'expire':
        if (command.term !== term) return DONE;
        for (const key of command.leases) {
          const lease = this.#find(key);
          if (lease?.version === key.version) this.#end(lease, 'expired');
        }
        return DONE;
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
    const { requestId, domain } = command;
    const known = this.ids.get(requestId);
    if (known !== undefined) {
      const field = difference(known, command);
      if (field !== undefined) return { type: 'reused', field };
      if ('version' in known) return { type: 'granted', token: known.token };
      return { type: 'ended', ended: this.viewOf(known) };
    }
    if (command.seenRevision < this.forgotten) return { type: 'tooOld' };
    if (this.holding) return { type: 'notGranted', reason: 'recovering', token: 0 };
    const current = this.live.get(domain);
    if (current !== undefined) return { type: 'notGranted', reason: 'held', token: current.token };
    const { holder, metadata, ttlMs, atUnixMs: grantedAtUnixMs, owner } = command;
    const token = this.revision as Live['token'];
    const about = { domain, token, requestId, holder, metadata, ttlMs, grantedAtUnixMs, owner };
    const lease: Live = { ...about, version: 0, leftMs: undefined, checkpointed: 0, voided: undefined };
    this.live.set(domain, lease);
    this.ids.set(requestId, lease);
    this.#touch(lease);
    return { type: 'granted', token };
  }

  #withdraw({ requestId, domain, owner }: CommandOf<'withdraw'>): Outcome {
    const known = this.ids.get(requestId);
    if (known === undefined) {
      this.#remember({
        requestId,
        domain,
        token: undefined,
        reason: 'withdrawn',
        by: '',
        note: '',
        owner,
        asked: undefined,
      });
      return { type: 'withdrawn' };
    }
    if (known.owner !== '' && known.owner !== owner) return { type: 'reused', field: 'owner' };
    if (known.domain !== domain) return { type: 'reused', field: 'domain' };
    if ('version' in known) this.#end(known, 'withdrawn');
    return { type: 'withdrawn' };
  }

  #release(command: CommandOf<'release'>): Outcome {
    const lease = this.#find(command);
    const over = this.over.find((each) => each.token === command.token && each.domain === command.domain);
    const owner = lease?.owner ?? over?.owner ?? '';
    if (owner !== '' && owner !== command.owner) return { type: 'reused', field: 'owner' };
    if (lease !== undefined) this.#end(lease, 'released');
    else if (over?.reason !== 'released') return { type: 'released', released: false, ended: this.endOf(command) };
    return { type: 'released', released: true, ended: undefined };
  }

  #find({ domain, token }: { readonly domain: string; readonly token: number }): Live | undefined {
    const lease = this.live.get(domain);
    return lease?.token === token ? lease : undefined;
  }

  #mark(key: { readonly domain: string; readonly token: number }, leftMs: number | undefined): Live | undefined {
    const lease = this.#find(key);
    if (lease === undefined) return undefined;
    lease.version++;
    lease.leftMs = leftMs;
    this.#touch(lease);
    return lease;
  }

  #end(lease: Live, reason: Over['reason'], by = '', note = ''): void {
    const { requestId, domain, token, owner, ttlMs, holder } = lease;
    this.live.delete(domain);
    this.touched.add(domain);
    this.#remember({ requestId, domain, token, reason, by, note, owner, asked: { ttlMs, holder } });
  }

  #remember(request: Omit<Over, 'finishedAt'>): void {
    const over: Over = { ...request, finishedAt: this.revision as Over['finishedAt'] };
    this.over.push(over);
    this.ids.set(over.requestId, over);
    this.touchedIds.add(over.requestId);
  }

  /** The oldest go, all of one revision together, while at least `keep` remain. */
  #forget(): void {
    while (this.over.length > this.keep) {
      const oldest = this.over[0]?.finishedAt;
      const gone = this.over.filter(({ finishedAt }) => finishedAt === oldest);
      if (oldest === undefined || this.over.length - gone.length < this.keep) return;
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

/** The field in which an Acquire is not what its id stands for. */
function difference(known: Live | Over, command: CommandOf<'acquire'>): string | undefined {
  if (known.owner !== '' && known.owner !== command.owner) return 'owner';
  if (known.domain !== command.domain) return 'domain';
  const asked = 'version' in known ? known : known.asked;
  if (asked === undefined) return undefined;
  if (asked.ttlMs !== command.ttlMs) return 'ttl_ms';
  return asked.holder === command.holder ? undefined : 'holder';
}
