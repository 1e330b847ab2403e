/**
 * The lease rules written down a second time, with plain arrays and nothing to be fast with, to compare `apply` with.
 * It also keeps what a real state forgets: every grant and every end there ever was.
 */
import type { Domain, RequestId } from '../../src/base/ids.js';
import { ZERO_REVISION } from '../../src/base/revision.js';
import type { EndedView } from '../../src/base/api.js';
import type { Revision } from '../../src/base/revision.js';
import type { Command, LeaseKey } from '../../src/lease/commands.js';
import type { FinishedRequest, Lease, Result } from '../../src/lease/types.js';
import { BASE } from './kit.js';

type Of<Type extends Command['type']> = Extract<Command, { readonly type: Type }>;
const DONE: Result = { type: 'done' };

export class Model {
  leases: Lease[] = [];
  finished: FinishedRequest[] = [];
  forgotten = ZERO_REVISION;
  holding: boolean;
  revision = BASE;
  readonly everGranted: Lease[] = [];
  readonly keep: number;

  constructor(keep: number, holding: boolean) {
    this.keep = keep;
    this.holding = holding;
  }

  apply(term: number, command: Command | undefined): Result {
    this.revision = (this.revision + 1) as Revision;
    const result = command === undefined ? DONE : this.dispatch(term, command);
    this.evict();
    return result;
  }

  private dispatch(term: number, command: Command): Result {
    switch (command.type) {
      case 'acquire':
        return this.acquire(command);
      case 'withdraw':
        return this.withdraw(command);
      case 'release':
        return this.release(command);
      case 'forceRelease':
        return this.forceRelease(command);
      case 'expire':
        if (command.term !== term) return DONE;
        for (const key of command.leases) {
          const lease = this.live(key);
          if (lease?.version === key.version) this.end(lease, 'expired');
        }
        return DONE;
      case 'checkpoint':
        for (const key of command.leases) this.mark(key, key.leftMs);
        return DONE;
      case 'void':
        for (const key of command.leases) this.mark(key, undefined);
        return DONE;
      case 'endHold':
        if (command.term === term) this.holding = false;
        return DONE;
    }
  }

  private acquire(command: Of<'acquire'>): Result {
    const lease = this.leases.find((one) => one.requestId === command.requestId);
    const over = this.finished.find((one) => one.requestId === command.requestId);
    const known = lease ?? over;
    if (known !== undefined) {
      if (known.owner !== '' && known.owner !== command.owner) return { type: 'reused', difference: 'owner' };
      if (known.domain !== command.domain) return { type: 'reused', difference: 'domain' };
      const asked = lease ?? over?.asked;
      if (asked !== undefined && asked.ttlMs !== command.ttlMs) return { type: 'reused', difference: 'ttl_ms' };
      if (asked !== undefined && asked.holder !== command.holder) return { type: 'reused', difference: 'holder' };
    }
    if (lease !== undefined) return { type: 'granted', lease };
    if (over !== undefined) return { type: 'ended', ended: this.endedView(over) };
    if (command.seenRevision < this.forgotten) return { type: 'tooOld', forgotten: this.forgotten };
    if (this.holding) return { type: 'notGranted', reason: 'recovering', current: undefined };
    const current = this.leases.find((one) => one.domain === command.domain);
    if (current !== undefined) return { type: 'notGranted', reason: 'held', current };
    const { domain, requestId, holder, metadata, ttlMs, owner } = command;
    const grantedAtUnixMs = command.atUnixMs;
    const fresh: Lease = {
      ...{ domain, requestId, holder, metadata, ttlMs, owner, grantedAtUnixMs },
      ...{ token: this.revision, version: 0, checkpointLeftMs: undefined },
    };
    this.leases.push(fresh);
    this.everGranted.push(fresh);
    return { type: 'granted', lease: fresh };
  }

  private withdraw({ requestId, domain, owner }: Of<'withdraw'>): Result {
    const lease = this.leases.find((one) => one.requestId === requestId);
    const known = lease ?? this.finished.find((one) => one.requestId === requestId);
    if (known === undefined) this.remember(requestId, domain, owner, 'withdrawn', undefined);
    else if (known.owner !== '' && known.owner !== owner) return { type: 'reused', difference: 'owner' };
    else if (known.domain !== domain) return { type: 'reused', difference: 'domain' };
    if (lease !== undefined) this.end(lease, 'withdrawn');
    return { type: 'withdrawn' };
  }

  private release(command: Of<'release'>): Result {
    const lease = this.live(command);
    const over = this.over(command);
    const owner = lease?.owner ?? over?.owner ?? '';
    if (owner !== '' && owner !== command.owner) return { type: 'reused', difference: 'owner' };
    if (lease !== undefined) this.end(lease, 'released');
    if (lease !== undefined || over?.reason === 'released')
      return { type: 'released', released: true, ended: undefined };
    return { type: 'released', released: false, ended: this.describeEnd(command) };
  }

  private forceRelease({ domain, token, by, note }: Of<'forceRelease'>): Result {
    const lease = this.live({ domain, token });
    if (lease !== undefined) this.end(lease, 'force_released', by, note);
    return { type: 'forceReleased', released: lease !== undefined, currentToken: this.current(domain) };
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

  private live({ domain, token }: LeaseKey): Lease | undefined {
    return this.leases.find((one) => one.domain === domain && one.token === token);
  }

  private over({ domain, token }: LeaseKey): FinishedRequest | undefined {
    return this.finished.find((one) => one.domain === domain && one.token === token);
  }

  private current(domain: Domain): Revision {
    return this.leases.find((one) => one.domain === domain)?.token ?? ZERO_REVISION;
  }

  private mark(key: LeaseKey, checkpointLeftMs: number | undefined): void {
    this.leases = this.leases.map((one) =>
      one.domain === key.domain && one.token === key.token
        ? { ...one, version: one.version + 1, checkpointLeftMs }
        : one,
    );
  }

  private end(lease: Lease, reason: FinishedRequest['reason'], by = '', note = ''): void {
    this.leases = this.leases.filter((one) => one !== lease);
    this.remember(lease.requestId, lease.domain, lease.owner, reason, lease, by, note);
  }

  private remember(
    requestId: RequestId,
    domain: Domain,
    owner: string,
    reason: FinishedRequest['reason'],
    lease: Lease | undefined,
    by = '',
    note = '',
  ): void {
    const asked = lease === undefined ? undefined : { ttlMs: lease.ttlMs, holder: lease.holder };
    const finishedAt = this.revision;
    this.finished.push({ requestId, domain, finishedAt, token: lease?.token, reason, by, note, owner, asked });
  }

  private evict(): void {
    for (;;) {
      const oldest = Math.min(...this.finished.map((one) => one.finishedAt));
      const younger = this.finished.filter((one) => one.finishedAt !== oldest);
      if (younger.length < this.keep) return;
      this.finished = younger;
      this.forgotten = oldest as Revision;
    }
  }
}
