/**
 * Fencing for gRPC services on `@grpc/grpc-js`: metadata for a lease, a client that sends them and reads the ends of calls as
 * outcomes, and handlers that hand the lease to a guard.
 *
 * The handler's wrapper compares nothing in one step with a change, because it makes none. It reads the lease that a call
 * presents and refuses what cannot pass; the guard of the store that is changed (`guard.run(leases, work)`) decides. A stream
 * is judged at its start; each message that changes something is for the guard again. Reads are not fenced, and the metadata
 * are no credentials: authenticate the callers.
 *
 * @packageDocumentation
 */
export { fencedCall, fencingInterceptor } from './grpc-client.js';
export type { UnaryCall } from './grpc-client.js';
export { fencingMetadata } from './grpc-metadata.js';
export type { IncomingMetadata } from './grpc-metadata.js';
export { grpcFencing } from './grpc-server.js';
export type { GrpcCall, GrpcFencing, GrpcFencingOptions, UnaryCallback } from './grpc-server.js';
export { GrpcRefusalError, outcomeFrom } from './grpc-status.js';
export type { GrpcError } from './grpc-status.js';
export type { FenceReader } from './presented.js';
export type { Fence } from './fence.js';
export type { Applied, FencedLease, Missing, Outcome, Rejected, Retry, Stale } from './types.js';
