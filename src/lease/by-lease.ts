/**
 * Finished requests by the lease that they had held. Every end asks for it several times, so the key is the token alone:
 * a text of token and domain would have to be put together, and hashed, each time. Nearly every token was granted in one
 * domain; only an entry that freed several at once granted several under its revision.
 */
import type { Domain } from '../base/ids.js';
import type { Revision } from '../base/revision.js';
import type { FinishedRequest } from './types.js';

/** By token: the only request that is over, or all of them by domain. Changed only by the functions of this file. */
export type ByLease = Map<Revision, FinishedRequest | Map<Domain, FinishedRequest>>;

/** The request that had held (domain, token). */
export function findByLease(table: ByLease, domain: Domain, token: Revision): FinishedRequest | undefined {
  const found = table.get(token);
  if (found instanceof Map) return found.get(domain);
  return found?.domain === domain ? found : undefined;
}

/** Adds `request`, which held `token`, in the place of one with the same lease. */
export function addByLease(table: ByLease, token: Revision, request: FinishedRequest): void {
  const found = table.get(token);
  if (found instanceof Map) found.set(request.domain, request);
  else if (found === undefined || found.domain === request.domain) table.set(token, request);
  else {
    table.set(
      token,
      new Map([
        [found.domain, found],
        [request.domain, request],
      ]),
    );
  }
}

/** Takes out the request that had held (domain, token), if there is one. */
export function removeByLease(table: ByLease, domain: Domain, token: Revision): void {
  const found = table.get(token);
  if (found instanceof Map) {
    found.delete(domain);
    if (found.size === 0) table.delete(token);
  } else if (found?.domain === domain) table.delete(token);
}
