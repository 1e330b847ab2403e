/** The main export of the package: the client. */
import { Client } from './client.js';
import { openGrpcChannel } from './grpc-channel.js';
import type { ConnectOptions } from './options.js';
import { systemSurroundings } from './surroundings.js';

/**
 * Makes a client of the cluster behind `endpoints`. Connects when the first call needs it, so it returns at once and
 * does not fail when no node is there. Throws `INVALID_OPTIONS`, with every fault, when an option is wrong.
 */
export function connect(options: ConnectOptions): Client {
  return new Client(options, systemSurroundings(), openGrpcChannel);
}

export type { Freshness } from '../base/api.js';
export type { Client, NodeStatus } from './client.js';
export type { ElectOptions } from './elect.js';
export type { ErrorCode } from './error-codes.js';
export {
  AbortedError,
  ClosedError,
  ClusterError,
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
export type { AcquireOptions, ConnectOptions } from './options.js';
export type { SlotOptions, Slots } from './slots.js';
export type { DomainInfo, DomainSummary, EndInfo, LeaseInfo, TokenState, WaiterInfo } from './views.js';
