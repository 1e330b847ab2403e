/** The messages of the public API as bytes, by `@grpc/proto-loader`; read once when the process starts. */
import { loadSync } from '@grpc/proto-loader';
import type { MethodDefinition, ServiceDefinition } from '@grpc/proto-loader';
import protobuf from 'protobufjs';
import { assert } from '../base/assert.js';
import { PROTO_DIRECTORY } from './public-directory.js';
import type { CallType, RequestMessages, ResponseMessages } from './public-types.js';

const definition = loadSync(['fencepost/v1/lease.proto', 'fencepost/v1/cluster.proto'], {
  includeDirs: [PROTO_DIRECTORY],
  keepCase: false,
  longs: BigInt,
  enums: String,
  defaults: true,
  oneofs: true,
});

/** Which method answers which call: service and method by the names in the files. */
const METHODS = {
  acquire: ['LeaseService', 'Acquire'],
  renew: ['LeaseService', 'Renew'],
  release: ['LeaseService', 'Release'],
  withdraw: ['LeaseService', 'Withdraw'],
  verify: ['LeaseService', 'Verify'],
  get: ['LeaseService', 'Get'],
  list: ['LeaseService', 'List'],
  getStatus: ['ClusterService', 'GetStatus'],
  transferLeadership: ['ClusterService', 'TransferLeadership'],
  forceRelease: ['ClusterService', 'ForceRelease'],
  changeLimits: ['ClusterService', 'ChangeLimits'],
  getStateHash: ['ClusterService', 'GetStateHash'],
} as const satisfies Record<CallType, readonly [service: string, method: string]>;

const definitions = new Map(Object.keys(METHODS).map((type) => [type, definitionOf(type as CallType)]));

/** `/package.Service/Method`. */
export function pathOf(type: CallType): string {
  return loaded(type).path;
}

/** The bytes of a request message. */
export function encodeRequest<T extends CallType>(type: T, message: RequestMessages[T]): Buffer {
  return loaded(type).requestSerialize(message);
}

/** The request message in `bytes`; throws for bytes that are no message. */
export function decodeRequest<T extends CallType>(type: T, bytes: Uint8Array): RequestMessages[T] {
  return loaded(type).requestDeserialize(strict(bytes)) as RequestMessages[T];
}

/** The bytes of a response message. */
export function encodeResponse<T extends CallType>(type: T, message: ResponseMessages[T]): Buffer {
  return loaded(type).responseSerialize(message);
}

/** The response message in `bytes`; throws for bytes that are no message. */
export function decodeResponse<T extends CallType>(type: T, bytes: Uint8Array): ResponseMessages[T] {
  return loaded(type).responseDeserialize(strict(bytes)) as ResponseMessages[T];
}

/** A method whose answer is a stream: its path, and its messages as bytes. The decoders throw for bytes that are none. */
export interface StreamMessages<Request extends object, Response extends object> {
  readonly path: string;
  readonly encodeRequest: (message: Request) => Buffer;
  readonly decodeRequest: (bytes: Uint8Array) => Request;
  readonly encodeResponse: (message: Response) => Buffer;
  readonly decodeResponse: (bytes: Uint8Array) => Response;
}

/** A streaming method by the names in the files; the caller says of which types its messages are. */
export function streamMessages<Request extends object, Response extends object>(
  service: string,
  method: string,
): StreamMessages<Request, Response> {
  const found = find(service, method);
  return {
    path: found.path,
    encodeRequest: (message) => found.requestSerialize(message),
    decodeRequest: (bytes) => found.requestDeserialize(strict(bytes)) as Request,
    encodeResponse: (message) => found.responseSerialize(message),
    decodeResponse: (bytes) => found.responseDeserialize(strict(bytes)) as Response,
  };
}

function loaded(type: CallType): MethodDefinition<object, object> {
  const method = definitions.get(type);
  assert(method !== undefined, `no method for the call ${type}`);
  return method;
}

function definitionOf(type: CallType): MethodDefinition<object, object> {
  const [service, method] = METHODS[type];
  return find(service, method);
}

function find(service: string, method: string): MethodDefinition<object, object> {
  // proto-loader's types do not tell a service from a message; the names above are those of services.
  const found = (definition[`fencepost.v1.${service}`] as ServiceDefinition | undefined)?.[method];
  assert(found !== undefined, `the files in ${PROTO_DIRECTORY} have no method ${service}.${method}`);
  return found;
}

/** protobufjs cuts a text that would end behind its message, where every other field throws: `d` for `domain`. */
export class StrictReader extends protobuf.BufferReader {
  override string(): string {
    const start = this.pos;
    const length = this.uint32();
    if (length > this.len - this.pos) throw new RangeError('a text ends behind the message');
    this.pos = start;
    return super.string();
  }
}

/** The decoders that proto-loader makes hand their bytes to protobufjs as they are, which takes a reader as well. */
function strict(bytes: Uint8Array): Buffer {
  const buffer = Buffer.isBuffer(bytes) ? bytes : Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  return new StrictReader(buffer) as unknown as Buffer;
}
