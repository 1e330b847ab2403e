/**
 * The public API on the wire, for the server and the client: raw gRPC method definitions whose serialisers map bytes
 * to the types of `base/api.ts`. It has exactly the methods that this version serves; others of the files are not
 * registered and answer UNIMPLEMENTED.
 */
import type { Call } from '../base/api.js';
import { responseOf } from './public-answer.js';
import type { PublicResponse } from './public-answer.js';
import { decodeRequest, decodeResponse, encodeRequest, encodeResponse, pathOf } from './public-messages.js';
import { readResponse } from './public-read.js';
import { requestOf } from './public-request.js';
import type { CallType, WireRequest, WireResponse } from './public-types.js';
import { UnexpectedResponse } from './public-unexpected.js';
import { WATCH_METHOD } from './public-watch.js';

/** A unary method as grpc-js takes it, on both sides. */
export interface PublicMethod {
  readonly path: string;
  readonly requestStream: false;
  readonly responseStream: false;
  /** A client makes the request by `requestOf(call)`. */
  readonly requestSerialize: (request: WireRequest) => Buffer;
  /** Never throws: a request that cannot be read has no message, and `parseRequest` says so. */
  readonly requestDeserialize: (bytes: Buffer) => WireRequest;
  readonly responseSerialize: (response: PublicResponse) => Buffer;
  /** Throws `UnexpectedResponse`. */
  readonly responseDeserialize: (bytes: Buffer) => PublicResponse;
}

/** `fencepost.v1.LeaseService`. */
export const LEASE_SERVICE = {
  Acquire: method('acquire'),
  Renew: method('renew'),
  Release: method('release'),
  Withdraw: method('withdraw'),
  Verify: method('verify'),
  Get: method('get'),
  List: method('list'),
  Watch: WATCH_METHOD,
} as const;

/** `fencepost.v1.ClusterService`. */
export const CLUSTER_SERVICE = {
  GetStatus: method('getStatus'),
  TransferLeadership: method('transferLeadership'),
  ForceRelease: method('forceRelease'),
  ChangeLimits: method('changeLimits'),
  GetStateHash: method('getStateHash'),
} as const;

/** The method of a call. */
export const METHOD_OF: Readonly<Record<CallType, PublicMethod>> = {
  acquire: LEASE_SERVICE.Acquire,
  renew: LEASE_SERVICE.Renew,
  release: LEASE_SERVICE.Release,
  withdraw: LEASE_SERVICE.Withdraw,
  verify: LEASE_SERVICE.Verify,
  get: LEASE_SERVICE.Get,
  list: LEASE_SERVICE.List,
  getStatus: CLUSTER_SERVICE.GetStatus,
  transferLeadership: CLUSTER_SERVICE.TransferLeadership,
  forceRelease: CLUSTER_SERVICE.ForceRelease,
  changeLimits: CLUSTER_SERVICE.ChangeLimits,
  getStateHash: CLUSTER_SERVICE.GetStateHash,
};

/** The bytes of a call's request message. */
export function encodeCall(call: Call): Buffer {
  return serializeRequest(requestOf(call));
}

function serializeRequest(request: WireRequest): Buffer {
  if (request.message === undefined) throw new TypeError(`the request of ${request.type} has no message`);
  return encodeRequest(request.type, request.message);
}

function method(type: CallType): PublicMethod {
  return {
    path: pathOf(type),
    requestStream: false,
    responseStream: false,
    requestSerialize: serializeRequest,
    requestDeserialize: (bytes) => readableRequest(type, bytes),
    responseSerialize: (response) => {
      const { type: of, message } = responseOf(response);
      return encodeResponse(of, message);
    },
    responseDeserialize: (bytes) => {
      try {
        // The pair is of one type by construction, which the type checker does not follow through a type parameter.
        return readResponse({ type, message: decodeResponse(type, bytes) } as WireResponse);
      } catch (error) {
        if (error instanceof UnexpectedResponse) throw error;
        throw new UnexpectedResponse('the response', 'is no message', { cause: error });
      }
    },
  };
}

function readableRequest(type: CallType, bytes: Buffer): WireRequest {
  try {
    return { type, message: decodeRequest(type, bytes) } as WireRequest;
  } catch {
    return { type, message: undefined };
  }
}
