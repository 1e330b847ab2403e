/** Refusals as the status of a gRPC call with `google.rpc.ErrorInfo`, and back. */
import { Metadata, status } from '@grpc/grpc-js';
import protobuf from 'protobufjs';
import type { IncomingMetadata } from './grpc-metadata.js';
import type { LeaseMalformed, LeaseRequired } from './presented.js';
import type { FencedLease, Missing, Rejected, Retry, Stale } from './types.js';

/** Whatever a service may end a call with instead of carrying it out. */
export type GrpcRefusal = Stale | Rejected | Missing | Retry | LeaseRequired | LeaseMalformed;

/** A refusal, as a handler of grpc-js ends its call with it. */
export class GrpcRefusalError extends Error {
  /** `GrpcRefusalError`. */
  override readonly name = 'GrpcRefusalError';
  /** Status code of gRPC: INVALID_ARGUMENT, FAILED_PRECONDITION, NOT_FOUND or ABORTED. */
  readonly code: number;
  /** The message. */
  readonly details: string;
  /** With `grpc-status-details-bin`. */
  readonly metadata: Metadata;

  constructor(code: number, details: string, metadata: Metadata) {
    super(details);
    this.code = code;
    this.details = details;
    this.metadata = metadata;
  }
}

type Kind = Exclude<GrpcRefusal['status'], 'rejected'> | Rejected['reason'];

/** UNAVAILABLE is for none of them: clients and proxies repeat it by themselves. ABORTED says: do the whole again. */
const KINDS: Record<Kind, { readonly code: number; readonly reason: string }> = {
  required: { code: status.INVALID_ARGUMENT, reason: 'FENCING_LEASE_REQUIRED' },
  malformed: { code: status.INVALID_ARGUMENT, reason: 'FENCING_METADATA_MALFORMED' },
  stale: { code: status.FAILED_PRECONDITION, reason: 'STALE_FENCING_TOKEN' },
  issuer: { code: status.FAILED_PRECONDITION, reason: 'FENCE_OF_ANOTHER_ISSUER' },
  incarnation: { code: status.FAILED_PRECONDITION, reason: 'TOKEN_OF_ANOTHER_INCARNATION' },
  jump: { code: status.FAILED_PRECONDITION, reason: 'FENCING_TOKEN_JUMP' },
  missing: { code: status.NOT_FOUND, reason: 'FENCED_ROW_MISSING' },
  retry: { code: status.ABORTED, reason: 'FENCED_OPERATION_GIVEN_UP' },
};

const REASONS = ['issuer', 'incarnation', 'jump'] as const satisfies readonly Rejected['reason'][];

const DETAILS = 'grpc-status-details-bin';
/** `ErrorInfo.domain`. */
const DOMAIN = 'fencepost';
const ERROR_INFO = 'type.googleapis.com/google.rpc.ErrorInfo';

const { root } = protobuf.parse(`
  syntax = "proto3";
  message Status { int32 code = 1; string message = 2; repeated Any details = 3; }
  message Any { string typeUrl = 1; bytes value = 2; }
  message ErrorInfo { string reason = 1; string domain = 2; map<string, string> metadata = 3; }`);
const StatusMessage = root.lookupType('Status');
const ErrorInfo = root.lookupType('ErrorInfo');

/** What a call that was refused under these leases ends with. Tokens are decimal texts in it. */
export function refusalError(refusal: GrpcRefusal, leases: readonly FencedLease[]): GrpcRefusalError {
  const { code, reason } = KINDS[refusal.status === 'rejected' ? refusal.reason : refusal.status];
  const message = messageOf(refusal);
  const facts: Record<string, string> = {
    domain: leases.map(({ domain }) => domain).join(','),
    presented: leases.map(({ token }) => token.toString()).join(','),
    ...(refusal.status === 'stale' ? { fence: refusal.fence.toString() } : {}),
    ...(refusal.status === 'required' ? { required: refusal.domains.join(',') } : {}),
    ...(refusal.status === 'retry' ? { attempts: refusal.attempts.toString() } : {}),
  };
  const value = ErrorInfo.encode({ reason, domain: DOMAIN, metadata: facts }).finish();
  const bytes = StatusMessage.encode({ code, message, details: [{ typeUrl: ERROR_INFO, value }] }).finish();
  const metadata = new Metadata();
  metadata.set(DETAILS, Buffer.from(bytes));
  return new GrpcRefusalError(code, message, metadata);
}

function messageOf(refusal: GrpcRefusal): string {
  switch (refusal.status) {
    case 'required':
      return (
        `send a lease of ${refusal.domains.join(', ')} in the metadata fencing-domain, fencing-token, fencing-cluster and ` +
        'fencing-incarnation'
      );
    case 'malformed':
      return refusal.faults.join('; ');
    case 'stale':
      return `token ${refusal.fence} was accepted before. Stop the work of this lease; do not call again`;
    case 'rejected':
      return refusal.message;
    case 'missing':
      return 'the fence let the call pass, and what it was to change is not there';
    case 'retry':
      return `given up ${refusal.attempts} times because of others at the same time; call again after a pause`;
  }
}

/** An error of grpc-js's client, as far as it is read here. */
export interface GrpcError {
  /** The message of the status. */
  readonly details: string;
  /** Trailing metadata. */
  readonly metadata: IncomingMetadata;
}

/**
 * The outcome of a guard in the error of a call; undefined when it is none: the call failed, or the service could not read the
 * lease.
 */
export function outcomeFrom(error: GrpcError): Stale | Rejected | Missing | Retry | undefined {
  const info = infoIn(error.metadata.get(DETAILS)[0]);
  if (info?.domain !== DOMAIN) return undefined;
  const { details: message } = error;
  const { fence = '', attempts = '' } = info.metadata;
  const rejected = REASONS.find((each) => KINDS[each].reason === info.reason);
  if (rejected !== undefined) return { status: 'rejected', reason: rejected, message };
  switch (info.reason) {
    case KINDS.stale.reason:
      return /^[0-9]{1,19}$/.test(fence) ? { status: 'stale', fence: BigInt(fence) } : undefined;
    case KINDS.missing.reason:
      return { status: 'missing' };
    case KINDS.retry.reason:
      return /^[0-9]{1,9}$/.test(attempts)
        ? { status: 'retry', attempts: Number(attempts), cause: message }
        : undefined;
    default:
      return undefined;
  }
}

interface Info {
  readonly reason: string;
  readonly domain: string;
  readonly metadata: Readonly<Record<string, string>>;
}

function infoIn(bytes: string | Uint8Array | undefined): Info | undefined {
  if (!(bytes instanceof Uint8Array)) return undefined;
  try {
    const { details } = StatusMessage.toObject(StatusMessage.decode(bytes), { arrays: true }) as {
      readonly details: readonly { readonly typeUrl?: string; readonly value?: Uint8Array }[];
    };
    const any = details.find(({ typeUrl }) => typeUrl === ERROR_INFO);
    if (any?.value === undefined) return undefined;
    return ErrorInfo.toObject(ErrorInfo.decode(any.value), { defaults: true }) as Info;
  } catch {
    return undefined;
  }
}
