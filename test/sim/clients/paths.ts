/** Counts what clients did and were told. */
import type { Coverage } from '../coverage.js';
import type { Attempt, AttemptObserver, Told } from './attempts.js';

/** See the head of the file. */
export class ClientPaths implements AttemptObserver {
  readonly #coverage: Coverage;
  readonly #requests = new Map<string, { granted: boolean }>();
  readonly #released = new Set<string>();
  /** Grants that were told, each once. */
  readonly #grants = new Set<number>();

  constructor(coverage: Coverage) {
    this.#coverage = coverage;
  }

  /** Leases that somebody was told to hold. */
  get grants(): number {
    return this.#grants.size;
  }

  sent({ call }: Attempt): void {
    switch (call.type) {
      case 'acquire':
        if (this.#requests.has(call.requestId)) this.#coverage.count('acquire repeated');
        else this.#requests.set(call.requestId, { granted: false });
        if (call.seenRevision === 0) this.#coverage.count('acquire without seen_revision');
        return;
      case 'release': {
        const key = `${call.lease.domain} ${call.lease.token}`;
        this.#coverage.count(this.#released.has(key) ? 'release repeated' : 'release');
        this.#released.add(key);
        return;
      }
      case 'withdraw':
        this.#coverage.count(
          this.#requests.get(call.requestId)?.granted === true ? 'withdrawn while granted' : 'withdraw',
        );
        return;
      case 'forceRelease':
        this.#coverage.count('force release asked');
        return;
      case 'transferLeadership':
        this.#coverage.count('leadership transfer asked');
        return;
      case 'changeLimits':
        this.#coverage.count('change of limits asked');
        return;
      case 'renew':
        if (call.leases.length > 1) this.#coverage.count('renewal of many leases');
        return;
      case 'verify':
      case 'get':
        this.#coverage.count(`${call.type} ${call.freshness}`);
        return;
      case 'list':
      case 'getStatus':
      case 'getStateHash':
        return;
    }
  }

  told({ call, reply }: Told): void {
    switch (reply.type) {
      case 'answer':
        this.#answered(call, reply.answer);
        return;
      case 'failure':
        this.#coverage.count(
          reply.failure.reason === 'REQUEST_TOO_OLD' ? 'request too old' : `call failed ${reply.failure.reason}`,
        );
        return;
      case 'silent':
        this.#coverage.count(reply.reached ? 'call unanswered' : 'call never left');
        return;
      case 'foreign':
        return;
    }
  }

  #answered(call: Attempt['call'], answer: Extract<Told['reply'], { type: 'answer' }>['answer']): void {
    if (call.type === 'acquire' && answer.type === 'acquire') {
      const { outcome } = answer;
      if (outcome.type === 'granted') {
        if (this.#grants.has(outcome.lease.token)) this.#coverage.count('acquire granted again');
        else this.#coverage.count('acquire granted');
        this.#grants.add(outcome.lease.token);
        const known = this.#requests.get(call.requestId);
        if (known !== undefined) known.granted = true;
      } else this.#coverage.count(`acquire ${outcome.type === 'notGranted' ? outcome.reason : outcome.type}`);
    }
    if (answer.type === 'renew') {
      for (const { type } of answer.results) this.#coverage.count(`renewal ${type}`);
    }
    if (answer.type === 'forceRelease' && answer.released) this.#coverage.count('force release');
  }
}
