/**
 * The messages of `proto/fencepost/v1` as proto-loader hands them out: 64-bit integers are `bigint`, enumerations are
 * their names (a number when this version does not know it), an unset message is null, an unset member of a oneof is
 * absent and the oneof's own name says which is set. A test holds these types to the files.
 */
import type { Call } from '../base/api.js';

/** Which call. */
export type CallType = Call['type'];
/** A name of an enumeration; a number from a newer version. */
export type WireEnum = string | number;
/** An `int64`: proto-loader gives a `bigint`; a pipeline gives a number where that is exact. */
export type WireInt64 = bigint | number;

/** LeaseRef. */
export interface WireLeaseRef {
  readonly domain: string;
  readonly token: WireInt64;
}
/** AcquireRequest. */
export interface WireAcquireRequest {
  readonly domain: string;
  readonly requestId: string;
  readonly holder: string;
  readonly ttlMs: number;
  readonly waitMs: number;
  readonly metadata: Readonly<Record<string, string>>;
  readonly coolDownMs: number;
  readonly slots: number;
  readonly seenRevision: WireInt64;
}
/** RenewRequest. */
export interface WireRenewRequest {
  readonly leases: readonly WireLeaseRef[];
}
/** ReleaseRequest. */
export interface WireReleaseRequest {
  readonly lease: WireLeaseRef | null;
}
/** WithdrawRequest. */
export interface WireWithdrawRequest {
  readonly domain: string;
  readonly requestId: string;
}
/** VerifyRequest. */
export interface WireVerifyRequest {
  readonly lease: WireLeaseRef | null;
  readonly freshness: WireEnum;
}
/** GetRequest. */
export interface WireGetRequest {
  readonly domain: string;
  readonly freshness: WireEnum;
}
/** ListRequest. */
export interface WireListRequest {
  readonly prefix: string;
  readonly pageSize: number;
  readonly pageToken: string;
  readonly freshness: WireEnum;
}
/** ForceReleaseRequest. */
export interface WireForceReleaseRequest {
  readonly domain: string;
  readonly token: bigint;
  readonly note: string;
}
/** TransferLeadershipRequest. */
export interface WireTransferLeadershipRequest {
  readonly toNodeId: string;
}
/** PrefixQuota. */
export interface WirePrefixQuota {
  readonly prefix: string;
  readonly leases: number;
  readonly waiters: number;
}
/** PrefixQuotas. */
export interface WirePrefixQuotas {
  readonly quotas: readonly WirePrefixQuota[];
}
/** ChangeLimitsRequest. */
export interface WireChangeLimitsRequest {
  readonly queueLimit?: number;
  readonly leasesPerPrincipal?: number;
  readonly waitersPerPrincipal?: number;
  readonly prefixQuotas: WirePrefixQuotas | null;
}
/** GetStatusRequest, GetStateHashRequest and WatchProgress. */
export type WireEmpty = Readonly<Record<string, never>>;

/** The request message of each call. */
export interface RequestMessages {
  readonly acquire: WireAcquireRequest;
  readonly renew: WireRenewRequest;
  readonly release: WireReleaseRequest;
  readonly withdraw: WireWithdrawRequest;
  readonly verify: WireVerifyRequest;
  readonly get: WireGetRequest;
  readonly list: WireListRequest;
  readonly forceRelease: WireForceReleaseRequest;
  readonly transferLeadership: WireTransferLeadershipRequest;
  readonly changeLimits: WireChangeLimitsRequest;
  readonly getStatus: WireEmpty;
  readonly getStateHash: WireEmpty;
}

/** A request that is not checked yet. `message` is undefined when the bytes were no such message. */
export type WireRequest = {
  readonly [T in CallType]: { readonly type: T; readonly message: RequestMessages[T] | undefined };
}[CallType];

/** ResponseHeader. */
export interface WireHeader {
  readonly cluster: string;
  readonly incarnation: string;
  readonly revision: WireInt64;
  readonly nodeId: string;
  readonly leaderId: string;
}
/** Lease. */
export interface WireLease {
  readonly domain: string;
  readonly token: WireInt64;
  readonly holder: string;
  readonly metadata: Readonly<Record<string, string>>;
  readonly ttlMs: number;
  readonly grantedAtUnixMs: WireInt64;
}
/** Ended. */
export interface WireEnded {
  readonly lease: WireLeaseRef | null;
  readonly reason: WireEnum;
  readonly by: string;
  readonly note: string;
  readonly currentToken: WireInt64;
}
/** Live. */
export interface WireLive {
  readonly ttlMs: number;
}
/** Queued. */
export interface WireQueued {
  readonly position: number;
  readonly current: WireLease | null;
}
/** NotGranted. */
export interface WireNotGranted {
  readonly reason: WireEnum;
  readonly current: WireLease | null;
  readonly queueLength: number;
  readonly coolDownLeftMs: number;
}
/** AcquireResponse. */
export interface WireAcquireResponse {
  readonly header: WireHeader | null;
  readonly requestId: string;
  readonly granted?: WireLease;
  readonly queued?: WireQueued;
  readonly notGranted?: WireNotGranted;
  readonly ended?: WireEnded;
}
/** RenewResult. */
export interface WireRenewResult {
  readonly live?: WireLive;
  readonly ended?: WireEnded;
}
/** RenewResponse. */
export interface WireRenewResponse {
  readonly header: WireHeader | null;
  readonly results: readonly WireRenewResult[];
}
/** ReleaseResponse. */
export interface WireReleaseResponse {
  readonly header: WireHeader | null;
  readonly released: boolean;
  readonly ended: WireEnded | null;
}
/** WithdrawResponse. */
export interface WireWithdrawResponse {
  readonly header: WireHeader | null;
}
/** VerifyResponse. */
export interface WireVerifyResponse {
  readonly header: WireHeader | null;
  readonly current?: WireLive;
  readonly ended?: WireEnded;
}
/** Waiter. */
export interface WireWaiter {
  readonly holder: string;
  readonly metadata: Readonly<Record<string, string>>;
  readonly queuedAtUnixMs: bigint;
}
/** Domain. */
export interface WireDomain {
  readonly name: string;
  readonly lease: WireLease | null;
  readonly leftMs: number;
  readonly queueLength: number;
  readonly waiters: readonly WireWaiter[];
  readonly coolDownLeftMs: number;
}
/** GetResponse. */
export interface WireGetResponse {
  readonly header: WireHeader | null;
  readonly domain: WireDomain | null;
}
/** ListResponse. */
export interface WireListResponse {
  readonly header: WireHeader | null;
  readonly domains: readonly WireDomain[];
  readonly nextPageToken: string;
}
/** WatchRequest. */
export interface WireWatchRequest {
  readonly prefix: string;
  readonly startRevision: bigint;
}
/** QueueChanged. */
export interface WireQueueChanged {
  readonly domain: string;
  readonly queueLength: number;
}
/** Event. */
export interface WireEvent {
  readonly revision: bigint;
  readonly granted?: WireLease;
  readonly ended?: WireEnded;
  readonly queueChanged?: WireQueueChanged;
}
/** WatchEvents. */
export interface WireWatchEvents {
  readonly events: readonly WireEvent[];
}
/** WatchCompacted. */
export interface WireWatchCompacted {
  readonly oldestRevision: bigint;
}
/** WatchResponse. */
export interface WireWatchResponse {
  readonly header: WireHeader | null;
  readonly events?: WireWatchEvents;
  readonly progress?: WireEmpty;
  readonly compacted?: WireWatchCompacted;
}
/** ForceReleaseResponse. */
export interface WireForceReleaseResponse {
  readonly released: boolean;
  readonly currentToken: bigint;
}
/** TransferLeadershipResponse. */
export interface WireTransferLeadershipResponse {
  readonly leaderId: string;
}
/** Limits. */
export interface WireLimits {
  readonly queueLimit: number;
  readonly leasesPerPrincipal: number;
  readonly waitersPerPrincipal: number;
  readonly prefixQuotas: readonly WirePrefixQuota[];
}
/** ChangeLimitsResponse. */
export interface WireChangeLimitsResponse {
  readonly before: WireLimits | null;
  readonly after: WireLimits | null;
}
/** Member. */
export interface WireMember {
  readonly nodeId: string;
  readonly peerAddress: string;
  readonly voter: boolean;
  readonly reachable: boolean;
  readonly lag: bigint;
  readonly directoryId: string;
}
/** GetStatusResponse. */
export interface WireGetStatusResponse {
  readonly cluster: string;
  readonly incarnation: string;
  readonly nodeId: string;
  readonly leaderId: string;
  readonly role: WireEnum;
  readonly term: bigint;
  readonly base: bigint;
  readonly lastRevision: bigint;
  readonly durableRevision: bigint;
  readonly committedRevision: bigint;
  readonly appliedRevision: bigint;
  readonly members: readonly WireMember[];
  readonly alarms: readonly string[];
  readonly version: string;
  readonly limits: WireLimits | null;
}
/** GetStateHashResponse. */
export interface WireGetStateHashResponse {
  readonly nodeId: string;
  readonly revision: bigint;
  readonly hash: Uint8Array;
}

/** The response message of each call. */
export interface ResponseMessages {
  readonly acquire: WireAcquireResponse;
  readonly renew: WireRenewResponse;
  readonly release: WireReleaseResponse;
  readonly withdraw: WireWithdrawResponse;
  readonly verify: WireVerifyResponse;
  readonly get: WireGetResponse;
  readonly list: WireListResponse;
  readonly forceRelease: WireForceReleaseResponse;
  readonly transferLeadership: WireTransferLeadershipResponse;
  readonly changeLimits: WireChangeLimitsResponse;
  readonly getStatus: WireGetStatusResponse;
  readonly getStateHash: WireGetStateHashResponse;
}

/** A response as its message. */
export type WireResponse = {
  readonly [T in CallType]: { readonly type: T; readonly message: ResponseMessages[T] };
}[CallType];
