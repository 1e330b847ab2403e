/**
 * A cluster for tests of the clients and their judges: one lease table behind several nodes, with the production state
 * machine and the simplest clock. It can be told to be wrong in one way.
 */
import type { Call, Header } from '../../../src/base/api.js';
import { failure } from '../../../src/base/errors.js';
import type { Incarnation, NodeId } from '../../../src/base/ids.js';
import { createRandom, nextInt } from '../../../src/base/random.js';
import { ZERO_REVISION } from '../../../src/base/revision.js';
import type { Revision } from '../../../src/base/revision.js';
import { apply } from '../../../src/lease/apply.js';
import { createState } from '../../../src/lease/load.js';
import type { State } from '../../../src/lease/state.js';
import type { Command } from '../../../src/lease/commands.js';
import type { Result } from '../../../src/lease/types.js';
import type { CallResult, Principal } from '../../../src/replica/types.js';
import { leaseState, leaseView } from '../../../src/replica/views.js';
import { between } from '../chance.js';
import type { Server, Surroundings } from '../ports.js';

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
  readonly #deadlines = new Map<number, number>();
  #copies = 0;

  constructor(surroundings: Surroundings, wrong: Wrong, finishedRequests: number) {
    this.#surroundings = surroundings;
    this.#wrong = wrong;
    const summary = { forgotten: ZERO_REVISION, holding: false, limits: { finishedRequests } };
    this.#state = createState(summary, { base: BASE, start: 0 }, BASE, []);
    this.servers = ['n1', 'n2', 'n3'].map((name) => this.#server(name as NodeId));
  }

  #server(node: NodeId): Server {
    const { scheduler, random } = this.#surroundings;
    return {
      node,
      listening: true,
      call: (principal, _timeoutMs, call, done) => {
        let open = true;
        scheduler.after(between(random, 0.1, 20), () => {
          if (!open) return;
          open = false;
          const result = this.#handle(call, principal, node);
          const revision = this.#state.revision;
          const header: Header = {
            cluster: 'sim',
            incarnation: this.incarnation,
            revision,
            node,
            leader: 'n1' as NodeId,
          };
          done(header, result);
        });
        return () => {
          open = false;
        };
      },
    };
  }

  #handle(call: Call, principal: Principal, node: NodeId): CallResult {
    const state = this.#state;
    const owner = '';
    switch (call.type) {
      case 'acquire': {
        const { domain, requestId, holder, ttlMs, metadata } = call;
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
            metadata,
            seenRevision,
            atUnixMs: 1,
            owner,
          }),
        );
      }
      case 'renew':
        return this.#answer({
          type: 'renew',
          results: call.leases.map((ref) => {
            const found = leaseState(state, ref);
            if (found.type === 'live') this.#touch(ref.token, found.ttlMs);
            return this.#wrong === 'renews what is over' ? { type: 'live', ttlMs: 1_000 } : found;
          }),
        });
      case 'release': {
        const result = this.#apply({ type: 'release', ...call.lease, owner });
        if (result.type !== 'released') return this.#failed();
        return this.#answer({ type: 'release', released: result.released, ended: result.ended });
      }
      case 'withdraw':
        this.#apply({ type: 'withdraw', domain: call.domain, requestId: call.requestId, owner });
        return this.#answer({ type: 'withdraw' });
      case 'forceRelease': {
        const { domain, token, note } = call;
        const result = this.#apply({ type: 'forceRelease', domain, token, note, by: principal.name });
        if (result.type !== 'forceReleased') return this.#failed();
        return this.#answer({ type: 'forceRelease', released: result.released, currentToken: result.currentToken });
      }
      case 'verify':
        return this.#answer({ type: 'verify', outcome: leaseState(state, call.lease) });
      case 'get': {
        const lease = state.leases.get(call.domain);
        const shown = lease === undefined ? undefined : leaseView(lease);
        return this.#answer({ type: 'get', domain: call.domain, lease: shown, leftMs: 0 });
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
          leader: 'n1' as NodeId,
          role: node === 'n1' ? 'leader' : 'follower',
          term: 1,
          base: BASE,
          lastRevision: revision,
          durableRevision: revision,
          committedRevision: revision,
          appliedRevision: revision,
          members: [],
          alarms: [],
        });
      }
    }
  }

  #acquired(call: Extract<Call, { type: 'acquire' }>, result: Result): CallResult {
    const { requestId } = call;
    switch (result.type) {
      case 'granted': {
        const { lease } = result;
        this.#touch(lease.token, lease.ttlMs);
        const view = leaseView(lease);
        return this.#answer({
          type: 'acquire',
          requestId,
          outcome: { type: 'granted', lease: { ...view, token: this.#shown(lease.token) } },
        });
      }
      case 'notGranted': {
        const current = result.current === undefined ? undefined : leaseView(result.current);
        return this.#answer({ type: 'acquire', requestId, outcome: { type: 'notGranted', reason: 'held', current } });
      }
      case 'ended':
        return this.#answer({ type: 'acquire', requestId, outcome: result });
      case 'tooOld': {
        const { revision } = this.#state;
        return { type: 'failure', failure: failure('REQUEST_TOO_OLD', 'too old', { revision }) };
      }
      case 'reused':
      case 'released':
      case 'withdrawn':
      case 'forceReleased':
      case 'done':
        return this.#failed();
    }
  }

  #shown(token: Revision): Revision {
    if (this.#wrong === 'tokens fall') return (BASE + 1_000_000 - (token - BASE)) as Revision;
    if (this.#wrong === 'repeats tokens') return (token - (token % 16) + 16) as Revision;
    return token;
  }

  /** An id under which nobody has asked, where the one given is over. */
  #renamed(id: Extract<Call, { type: 'acquire' }>['requestId']): typeof id {
    const known = this.#state.requests.known.get(id);
    if (typeof known !== 'object') return id;
    this.#copies++;
    return `00000000-0000-4000-8000-${String(this.#copies).padStart(12, '0')}` as typeof id;
  }

  #touch(token: number, ttlMs: number): void {
    const lifeMs = this.#wrong === 'shortens' ? ttlMs / 2 : ttlMs * 1.01 + 100;
    const { scheduler } = this.#surroundings;
    const deadline = scheduler.now + lifeMs;
    this.#deadlines.set(token, deadline);
    scheduler.after(lifeMs, () => {
      if (this.#deadlines.get(token) !== deadline) return;
      for (const lease of this.#state.leases.values()) if (lease.token === token) this.#end(lease.domain);
    });
  }

  #end(domain: Extract<Call, { type: 'acquire' }>['domain']): void {
    const lease = this.#state.leases.get(domain);
    if (lease === undefined) return;
    const { token, version } = lease;
    this.#apply({ type: 'expire', term: 1, leases: [{ domain, token, version }] });
    // What was granted twice did not end by time: nobody is told.
    if (this.#wrong !== 'grants twice') this.expired(domain, token, this.#surroundings.scheduler.now);
  }

  #apply(command: Command): Result {
    const revision = (this.#state.revision + 1) as Revision;
    return apply(this.#state, { revision, term: 1 }, command).result;
  }

  #answer(answer: Extract<CallResult, { type: 'answer' }>['answer']): CallResult {
    if (this.#wrong === 'fails inside' && nextInt(this.#chance, 0, 40) === 0) return this.#failed();
    return { type: 'answer', answer, revision: this.#state.revision };
  }

  #failed(): CallResult {
    return { type: 'failure', failure: failure('INTERNAL', 'a defect') };
  }
}
