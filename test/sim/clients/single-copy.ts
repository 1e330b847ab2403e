/**
 * A cluster for tests of the clients and their judges: one lease table behind several nodes, with the production state
 * machine and the simplest clock. It can be told to be wrong in one way.
 */
import type { AcquireCall, Call, DomainView, Header, LeaseRef } from '../../../src/base/api.js';
import { failure } from '../../../src/base/errors.js';
import type { Domain, Incarnation, NodeId, RequestId } from '../../../src/base/ids.js';
import { createRandom, nextInt } from '../../../src/base/random.js';
import { STATE_LIMITS } from '../../../src/base/limits.js';
import { ZERO_REVISION } from '../../../src/base/revision.js';
import type { Revision } from '../../../src/base/revision.js';
import { apply } from '../../../src/lease/apply.js';
import { createState } from '../../../src/lease/load.js';
import { coolDownOf, leaseInTheWay, listNames, position, queueOf } from '../../../src/lease/lookup.js';
import type { State } from '../../../src/lease/state.js';
import type { Command } from '../../../src/lease/commands.js';
import { isFinished } from '../../../src/lease/requests.js';
import type { Applied, Lease, Result } from '../../../src/lease/types.js';
import { sharedLimits, stateChange } from '../../../src/replica/limits.js';
import type { CallResult, Principal } from '../../../src/replica/types.js';
import { endedView, leaseState, leaseView, waiterView } from '../../../src/replica/views.js';
import { between } from '../chance.js';
import type { Server, Surroundings } from '../ports.js';
import { HeldCalls } from './held-calls.js';

/** What a {@link SingleCopy} does wrong. */
export type Wrong =
  | 'nothing'
  /** Every few acquires of a held domain are granted all the same. */
  | 'grants twice'
  /** Leases end after half their time. */
  | 'shortens'
  /** Two requests are shown one token. */
  | 'repeats tokens'
  /** Later grants are shown lower tokens. */
  | 'tokens fall'
  /** Every renewal is live. */
  | 'renews what is over'
  /** A request that is over is taken for a new one. */
  | 'forgets requests'
  /** Says that it has a defect. */
  | 'fails inside';

/** Who says that it leads. */
const NODE = 'n1' as NodeId;
const BASE = 1_796_000_000_000_000 as Revision;

/** See the head of the file. */
export class SingleCopy {
  readonly servers: readonly Server[];
  readonly incarnation = 'a'.repeat(32) as Incarnation;
  /** Told of every lease that ends by time. */
  expired: (domain: string, token: number, at: number) => void = () => undefined;
  readonly #surroundings: Surroundings;
  readonly #state: State;
  readonly #wrong: Wrong;
  readonly #chance = createRandom(1);
  readonly #deadlines = new Map<string, number>();
  readonly #held: HeldCalls;
  #copies = 0;

  constructor(surroundings: Surroundings, wrong: Wrong, finishedRequests: number) {
    this.#surroundings = surroundings;
    this.#wrong = wrong;
    const summary = { forgotten: ZERO_REVISION, holding: false, limits: { ...STATE_LIMITS, finishedRequests } };
    this.#state = createState(summary, { base: BASE, start: 0 }, BASE, []);
    this.#held = new HeldCalls(surroundings.scheduler, (requestId) => {
      const waits = [{ requestId, detached: this.#detached() }];
      this.#apply({ type: 'endWait', term: 1, waits, atUnixMs: 1 });
    });
    this.servers = ['n1', 'n2', 'n3'].map((name) => this.#server(name as NodeId));
  }

  #server(node: NodeId): Server {
    const { scheduler, random } = this.#surroundings;
    return {
      node,
      listening: true,
      watch: () => {
        throw new Error('a single table is not watched');
      },
      call: (principal, timeoutMs, call, done) => {
        let open = true;
        const respond = (result: CallResult): void => {
          if (!open) return;
          open = false;
          const { revision } = this.#state;
          const header: Header = { cluster: 'sim', incarnation: this.incarnation, revision, node, leader: NODE };
          done(header, result);
        };
        scheduler.after(between(random, 0.1, 20), () => {
          if (!open) return;
          const result = this.#handle(call, principal, node);
          if (result !== 'queued') respond(result);
          else if (call.type === 'acquire') this.#hold(call, timeoutMs, respond);
        });
        return () => {
          open = false;
          this.#held.drop(respond);
        };
      },
    };
  }

  #handle(call: Call, principal: Principal, node: NodeId): CallResult | 'queued' {
    const state = this.#state;
    const owner = '';
    switch (call.type) {
      case 'acquire': {
        const { domain, requestId, holder, ttlMs, waitMs, metadata, coolDownMs, slots } = call;
        const seenRevision = call.seenRevision > 0 ? call.seenRevision : state.revision;
        const id = this.#wrong === 'forgets requests' ? this.#renamed(call.requestId) : requestId;
        const live = state.leases.get(domain);
        if (this.#wrong === 'grants twice' && live !== undefined && nextInt(this.#chance, 0, 4) === 0)
          this.#end(domain);
        return this.#acquired(
          call,
          this.#apply({
            type: 'acquire',
            domain,
            requestId: id,
            holder,
            ttlMs,
            // What it has given another name it cannot find in a queue again.
            waitMs: id === requestId ? waitMs : 0,
            metadata,
            coolDownMs,
            slots,
            seenRevision,
            atUnixMs: 1,
            owner,
            principal: principal.name,
          }),
        );
      }
      case 'renew':
        return this.#answer({
          type: 'renew',
          results: call.leases.map((ref) => {
            const found = leaseState(state, ref);
            if (found.type === 'live') this.#touch(ref, found.ttlMs);
            return this.#wrong === 'renews what is over' ? { type: 'live', ttlMs: 1_000 } : found;
          }),
        });
      case 'release': {
        const result = this.#apply({ type: 'release', ...call.lease, owner, ...this.#freeing() });
        if (result.type !== 'released') return this.#failed();
        return this.#answer({ type: 'release', released: result.released, ended: result.ended });
      }
      case 'withdraw':
        this.#apply({
          type: 'withdraw',
          domain: call.domain,
          requestId: call.requestId,
          owner,
          ...this.#freeing(),
        });
        return this.#answer({ type: 'withdraw' });
      case 'forceRelease': {
        const { domain, token, note } = call;
        const result = this.#apply({
          type: 'forceRelease',
          domain,
          token,
          note,
          by: principal.name,
          ...this.#freeing(),
        });
        if (result.type !== 'forceReleased') return this.#failed();
        return this.#answer({ type: 'forceRelease', released: result.released, currentToken: result.currentToken });
      }
      case 'verify':
        return this.#answer({ type: 'verify', outcome: leaseState(state, call.lease) });
      case 'get': {
        const waiters = queueOf(state, call.domain).map(waiterView);
        return this.#answer({ type: 'get', ...this.#view(call.domain), waiters });
      }
      case 'list': {
        const names = listNames(state, call.prefix, call.after, call.pageSize + 1);
        const domains = names.slice(0, call.pageSize).map((name) => this.#view(name));
        const next = names.length > call.pageSize ? (domains.at(-1)?.domain ?? '') : '';
        return this.#answer({ type: 'list', domains, next });
      }
      case 'changeLimits': {
        const result = this.#apply({ type: 'limits', change: stateChange(call.change), by: principal.name });
        if (result.type !== 'limitsChanged') return this.#failed();
        const { before, after } = result;
        return this.#answer({ type: 'changeLimits', before: sharedLimits(before), after: sharedLimits(after) });
      }
      case 'transferLeadership':
        return this.#answer({ type: 'transferLeadership', leader: node });
      case 'getStateHash':
        return this.#answer({ type: 'getStateHash', node, revision: state.revision, hash: '0'.repeat(16) });
      case 'getStatus': {
        const { revision } = state;
        return this.#answer({
          type: 'getStatus',
          node,
          leader: NODE,
          role: node === NODE ? 'leader' : 'follower',
          term: 1,
          base: BASE,
          lastRevision: revision,
          durableRevision: revision,
          committedRevision: revision,
          appliedRevision: revision,
          members: [],
          alarms: [],
          limits: sharedLimits(state.limits),
        });
      }
    }
  }

  #view(domain: Domain): DomainView {
    const lease = this.#state.leases.get(domain);
    const queueLength = queueOf(this.#state, domain).length;
    const coolDownLeftMs = coolDownOf(this.#state, domain)?.ms ?? 0;
    return { domain, lease: lease && leaseView(lease), leftMs: 0, queueLength, coolDownLeftMs };
  }

  #acquired(call: AcquireCall, result: Result): CallResult | 'queued' {
    const { requestId, domain } = call;
    switch (result.type) {
      case 'granted':
        return this.#granted(requestId, result.lease);
      case 'queued':
        return 'queued';
      case 'notGranted': {
        const { reason } = result;
        const current = result.current === undefined ? undefined : leaseView(result.current);
        const queueLength = queueOf(this.#state, domain).length;
        const coolDownLeftMs = coolDownOf(this.#state, domain)?.ms ?? 0;
        const outcome = { type: 'notGranted', reason, current, queueLength, coolDownLeftMs } as const;
        return this.#answer({ type: 'acquire', requestId, outcome });
      }
      case 'ended':
        return this.#answer({ type: 'acquire', requestId, outcome: result });
      case 'tooOld': {
        const { revision } = this.#state;
        return { type: 'failure', failure: failure('REQUEST_TOO_OLD', 'too old', { revision }) };
      }
      case 'reused':
      case 'overQuota':
      case 'released':
      case 'withdrawn':
      case 'forceReleased':
      case 'limitsChanged':
      case 'done':
        return this.#failed();
    }
  }

  #granted(requestId: RequestId, lease: Lease): CallResult {
    this.#touch(lease, lease.ttlMs);
    const shown = { ...leaseView(lease), token: this.#shown(lease.token) };
    return this.#answer({ type: 'acquire', requestId, outcome: { type: 'granted', lease: shown } });
  }

  /** Holds a call for as long as one may be held, and whoever makes it for as long as it may wait. */
  #hold(call: AcquireCall, timeoutMs: number, respond: (result: CallResult) => void): void {
    const { requestId, ttlMs } = call;
    this.#held.hold(call, Math.min(ttlMs / 2, Math.max(0, 0.75 * timeoutMs - 100)), respond, () => {
      const waiter = this.#state.requests.known.get(requestId);
      if (typeof waiter !== 'object' || 'finishedAt' in waiter) return this.#failed();
      const inTheWay = leaseInTheWay(this.#state, waiter.domain);
      const current = inTheWay === undefined ? undefined : leaseView(inTheWay);
      const outcome = { type: 'queued', position: position(this.#state, waiter), current } as const;
      return this.#answer({ type: 'acquire', requestId, outcome });
    });
  }

  /** What an entry did to those who wait: who was granted, or left, is told. */
  #settle({ granted, left }: Applied): void {
    const { requests } = this.#state;
    for (const { requestId } of left) {
      const lease = granted.find((each) => each.requestId === requestId);
      if (lease !== undefined) {
        this.#touch(lease, lease.ttlMs);
        this.#held.answer(requestId, () => this.#granted(requestId, lease));
      } else if (requests.known.has(requestId)) {
        const ended = endedView(this.#state, requestId);
        this.#held.answer(requestId, () =>
          this.#answer({ type: 'acquire', requestId, outcome: { type: 'ended', ended } }),
        );
      }
    }
  }

  #freeing(): { readonly detached: readonly RequestId[]; readonly atUnixMs: number } {
    return { detached: this.#detached(), atUnixMs: 1 };
  }

  /** Everybody of whom no call is held. */
  #detached(): RequestId[] {
    const waiters = [...this.#state.queues.values()].flat();
    return waiters.map(({ requestId }) => requestId).filter((id) => !this.#held.has(id));
  }

  #shown(token: Revision): Revision {
    if (this.#wrong === 'tokens fall') return (BASE + 1_000_000 - (token - BASE)) as Revision;
    if (this.#wrong === 'repeats tokens') return (token - (token % 16) + 16) as Revision;
    return token;
  }

  /** An id under which nobody has asked, where the one given is over. */
  #renamed(id: RequestId): RequestId {
    if (!isFinished(this.#state.requests.known.get(id))) return id;
    this.#copies++;
    return `00000000-0000-4000-8000-${String(this.#copies).padStart(12, '0')}` as RequestId;
  }

  #touch({ domain, token }: LeaseRef, ttlMs: number): void {
    const lifeMs = this.#wrong === 'shortens' ? ttlMs / 2 : ttlMs * 1.01 + 100;
    const { scheduler } = this.#surroundings;
    const deadline = scheduler.now + lifeMs;
    this.#deadlines.set(`${domain} ${token}`, deadline);
    scheduler.after(lifeMs, () => {
      if (this.#deadlines.get(`${domain} ${token}`) !== deadline) return;
      if (this.#state.leases.get(domain)?.token === token) this.#end(domain);
    });
  }

  #end(domain: Domain): void {
    const lease = this.#state.leases.get(domain);
    if (lease === undefined) return;
    const { token, version } = lease;
    this.#apply({
      type: 'expire',
      term: 1,
      leases: [{ domain, token, version, detached: this.#detached() }],
      atUnixMs: 1,
    });
    // What was granted twice did not end by time: nobody is told.
    if (this.#wrong !== 'grants twice') this.expired(domain, token, this.#surroundings.scheduler.now);
  }

  /** Opens a domain again whose lease had asked for a cool-down. */
  #coolDown({ closed }: Applied): void {
    for (const { domain, since, ms } of closed) {
      this.#surroundings.scheduler.after(ms, () => {
        const domains = [{ domain, since, detached: this.#detached() }];
        this.#apply({ type: 'endCoolDown', term: 1, domains, atUnixMs: 1 });
      });
    }
  }

  #apply(command: Command): Result {
    const revision = (this.#state.revision + 1) as Revision;
    const applied = apply(this.#state, { revision, term: 1 }, command);
    this.#settle(applied);
    this.#coolDown(applied);
    return applied.result;
  }

  #answer(answer: Extract<CallResult, { type: 'answer' }>['answer']): CallResult {
    if (this.#wrong === 'fails inside' && nextInt(this.#chance, 0, 40) === 0) return this.#failed();
    return { type: 'answer', answer, revision: this.#state.revision };
  }

  #failed(): CallResult {
    return { type: 'failure', failure: failure('INTERNAL', 'a defect') };
  }
}
