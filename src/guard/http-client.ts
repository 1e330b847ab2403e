/** The client's side: requests under a lease, and their answers as outcomes. */
import { fencingHeaders, stringsOf } from './http-fields.js';
import { isProblem, refusalFrom } from './http-problem.js';
import type { ReceivedRefusal } from './http-problem.js';
import type { FencedLease, Outcome } from './types.js';

/** How a fenced request ends. What says nothing about the fence is thrown. */
export type HttpOutcome = Outcome<Response>;

/** Sends a request under a lease; what it takes is what `fetch` takes. */
export type FencedFetch = (input: string | URL | Request, init?: RequestInit) => Promise<HttpOutcome>;

/** Fields of the answer to a request that a guard has applied. */
export const OUTCOME_FIELD = 'Fencing-Outcome';
export const EARLIER_FIELD = 'Fencing-Earlier-Incarnation';

/**
 * The answer to a fenced request is none of the outcomes: the service has failed, knows no such address, could not read the
 * lease, or does not say that a guard applied the request. Unless `response.status` tells otherwise, the request may have
 * been carried out.
 */
export class FencedRequestError extends Error {
  /** `FencedRequestError`. */
  override readonly name = 'FencedRequestError';
  /** As it came; its body is unread. */
  readonly response: Response;

  constructor(message: string, response: Response) {
    super(message);
    this.response = response;
  }
}

/**
 * A `fetch` for requests under these leases. It adds their header fields, sends each request once, and never again, and reads
 * the answer: `applied` when it is a success that says that a guard applied it, `stale`, `rejected`, `missing` and `retry` as
 * the service's guard gave them. Redirects are not followed unless the request says so, because they may turn a change
 * into a mere read.
 *
 * The promise rejects with a {@link FencedRequestError} for any other answer, and as `fetch` itself does when there is none:
 * the request may have been carried out then. The fence does not tell a repetition from the first; that is what
 * an idempotency key is for.
 *
 * Throws a TypeError as {@link fencingHeaders} does.
 */
export function fencedFetch(
  leases: FencedLease | readonly FencedLease[],
  fetch: typeof globalThis.fetch = globalThis.fetch,
): FencedFetch {
  const fields = Object.entries(fencingHeaders(leases));
  return async (input, init = {}) => {
    const headers = new Headers(init.headers ?? (input instanceof Request ? input.headers : undefined));
    for (const [name, value] of fields) headers.set(name, value);
    return outcomeOf(await fetch(input, { redirect: 'manual', ...init, headers }));
  };
}

async function outcomeOf(response: Response): Promise<HttpOutcome> {
  if (response.ok) {
    if (response.headers.get(OUTCOME_FIELD) !== 'applied') {
      throw new FencedRequestError(
        `${said(response)} without ${OUTCOME_FIELD}: it does not say that a guard applied the request. It was carried out ` +
          'unguarded, or it needs no lease',
        response,
      );
    }
    const earlier = response.headers.get(EARLIER_FIELD);
    return { status: 'applied', value: response, earlierIncarnation: stringsOf(earlier ?? '')?.[0] };
  }
  const refusal = await refusalIn(response);
  if (refusal === undefined) {
    throw new FencedRequestError(`${said(response)}, which is no outcome of a guard`, response);
  }
  if (refusal.status === 'required' || refusal.status === 'malformed') {
    throw new FencedRequestError(`${said(response)}: ${refusal.message}`, response);
  }
  // Or the connection would stay in use until the response is collected.
  await response.body?.cancel();
  return refusal;
}

async function refusalIn(response: Response): Promise<ReceivedRefusal | undefined> {
  const mediaType = response.headers.get('Content-Type');
  // The body of an answer that is not ours stays unread for whoever catches the error.
  return isProblem(mediaType) ? refusalFrom(mediaType, await response.clone().text()) : undefined;
}

function said({ status, url }: Response): string {
  return `${url} answered ${status}`;
}
