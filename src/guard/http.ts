/**
 * Fencing for services over HTTP: header fields for a lease, a client that sends them and reads the answers as outcomes, and
 * middleware for Node's `http`, Express 5 and Fastify 5.
 *
 * The middleware compares nothing in one step with a change, because it makes none. It reads the lease that a request
 * presents and refuses what cannot pass; the handler hands the lease to the guard of the store that it changes
 * (`guard.run(leases, work)`), which decides, and the guard's outcome to the client. What the service keeps in its own memory,
 * when it is the only instance, is guarded by `fencepost/guard/memory`; any other store by its own guard. A handler that
 * changes something without a guard is not protected, whatever the headers say. Neither are reads.
 *
 * The fields are no credentials: whoever may send a request may name any token, so authenticate the callers.
 *
 * @packageDocumentation
 */
export { expressFencing, fastifyFencing, nodeFencing } from './http-adapters.js';
export type {
  ExpressFencing,
  FastifyFencing,
  FastifyResponse,
  HttpRequest,
  HttpResponse,
  NodeFencing,
} from './http-adapters.js';
export { fencedFetch, FencedRequestError } from './http-client.js';
export type { FencedFetch, HttpOutcome } from './http-client.js';
export { fencingHeaders } from './http-fields.js';
export type { FencingHeaders, IncomingFields } from './http-fields.js';
export type { HttpFencing, HttpFencingOptions } from './http-server.js';
export type { FenceReader } from './presented.js';
export type { Fence } from './fence.js';
export type { Applied, FencedLease, Missing, Outcome, Rejected, Retry, Stale } from './types.js';
