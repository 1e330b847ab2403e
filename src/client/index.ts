/**
 * The main export of the package: the client.
 *
 * @packageDocumentation
 */
import { createClient } from './client.js';
import type { Client } from './client.js';
import { openGrpcChannel } from './grpc-channel.js';
import { openGrpcWatch } from './grpc-watch.js';
import type { ConnectOptions } from './options.js';
import { openPipelineChannel } from './pipeline-channel.js';
import { systemSurroundings } from './surroundings.js';

/**
 * Makes a client of the cluster behind `endpoints`. Connects when the first call needs it, so it returns at once and
 * does not fail when no node is there. Throws `INVALID_OPTIONS`, with every fault, when an option is wrong.
 */
export function connect(options: ConnectOptions): Client {
  return createClient(
    options,
    systemSurroundings(),
    options.transport === 'unary' ? openGrpcChannel : openPipelineChannel,
    openGrpcWatch,
  );
}

export type { EndReason, Freshness, NotGrantedReason, RoleView } from '../base/api.js';
export { ERRORS } from '../base/errors.js';
export type { Outcome, Reason } from '../base/errors.js';
export type { Client } from './client.js';
export type { ElectOptions } from './elect.js';
export { CLIENT_ERRORS } from './error-codes.js';
export type { ErrorCode } from './error-codes.js';
export {
  AbortedError,
  ClosedError,
  ClusterError,
  CompactedError,
  FencepostError,
  InvalidOptionsError,
  LeaseLostError,
  NotGrantedError,
  OldClusterError,
  UnexpectedAnswerError,
  UnreachableError,
} from './errors.js';
export type { ErrorDetails } from './errors.js';
export type { Lease } from './lease.js';
export type { MemberInfo, NodeInfo, NodeStatus } from './node-status.js';
export type { Observation } from './observe.js';
export type { AcquireOptions, ConnectOptions, ObserveOptions } from './options.js';
export type { SlotOptions, Slots } from './slots.js';
export type { DomainChange, DomainInfo, DomainSummary, EndInfo, LeaseInfo, TokenState, WaiterInfo } from './views.js';
