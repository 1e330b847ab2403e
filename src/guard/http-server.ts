/** The service's side, whatever its framework: what a request presents goes to a guard, and the guard's outcome to the client. */
import { EARLIER_FIELD, OUTCOME_FIELD } from './http-client.js';
import { fieldsOf, fieldString } from './http-fields.js';
import type { IncomingFields } from './http-fields.js';
import { problemOf } from './http-problem.js';
import type { HttpProblem } from './http-problem.js';
import { judge } from './presented.js';
import type { FenceReader } from './presented.js';
import type { Applied, FencedLease, Outcome } from './types.js';

/** For each of the three adapters. */
export interface HttpFencingOptions<Q> {
  /**
   * The domains that this request needs a lease of. They follow from what it is about, its address for example, never from what
   * it presents: a lease of another domain opens nothing here. Undefined, or none, when it needs no lease; its fencing
   * fields are not looked at then.
   */
  readonly domains: (request: Q) => string | readonly string[] | undefined;
  /**
   * The guard that the handler uses. When it is given, a request whose refusal is certain already is refused before the
   * handler runs. That saves work and protects nothing: the guard itself has to judge again, in one step with the change.
   */
  readonly guard?: FenceReader;
}

/** What the handlers of all frameworks use. */
export interface HttpFencing<Q, A> {
  /**
   * What the request presented, for the guard's `run` or `open`; empty when it needs no lease, which no guard takes. Throws when
   * the request has not passed `admit`: a handler that forgot it must not go on unguarded.
   */
  leases(request: Q): readonly FencedLease[];
  /**
   * Whether the guard applied the operation. If it did, marks the answer, which the handler then sends; call it before. It
   * is not to be kept by caches (`Cache-Control: no-store`), a guarded read least of all. If not, sends the refusal: the
   * handler returns.
   */
  applied<T>(response: A, outcome: Outcome<T>): outcome is Applied<T>;
}

/** How a framework is spoken to. */
export interface Adapter<Q, A> {
  headers(request: Q): IncomingFields;
  setHeader(response: A, name: string, value: string): void;
  send(response: A, problem: HttpProblem): void;
}

/** The core of the adapters, with `admit`: undefined when the request was refused, and answered. */
export function fencingOver<Q extends object, A extends object>(
  adapter: Adapter<Q, A>,
  { domains, guard }: HttpFencingOptions<Q>,
): HttpFencing<Q, A> & { admit(request: Q, response: A): Promise<readonly FencedLease[] | undefined> } {
  /** By request and by response. */
  const known = new WeakMap<object, readonly FencedLease[]>();
  const leasesAt = (key: object): readonly FencedLease[] => {
    const leases = known.get(key);
    if (leases === undefined) {
      throw new Error('this request has not passed `admit` of these very fences: put that before its handler');
    }
    return leases;
  };
  return {
    async admit(request, response) {
      const named = domains(request) ?? [];
      const needed = typeof named === 'string' ? [named] : named;
      const { leases, refusal } =
        needed.length === 0
          ? { leases: [], refusal: undefined }
          : await judge(fieldsOf(adapter.headers(request)), needed, guard);
      if (refusal !== undefined) {
        adapter.send(response, problemOf(refusal, leases));
        return undefined;
      }
      known.set(request, leases).set(response, leases);
      return leases;
    },
    leases: leasesAt,
    applied<T>(response: A, outcome: Outcome<T>): outcome is Applied<T> {
      const leases = leasesAt(response);
      if (outcome.status !== 'applied') {
        adapter.send(response, problemOf(outcome, leases));
        return false;
      }
      adapter.setHeader(response, OUTCOME_FIELD, 'applied');
      // A cache that gave it to the next one would pass by the guard.
      adapter.setHeader(response, 'Cache-Control', 'no-store');
      const { earlierIncarnation } = outcome;
      if (earlierIncarnation !== undefined) {
        adapter.setHeader(response, EARLIER_FIELD, fieldString(earlierIncarnation));
      }
      return true;
    },
  };
}
