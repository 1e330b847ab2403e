/** The {@link Channel} with a gRPC call for each send. */
import { Metadata, status } from '@grpc/grpc-js';
import type { ServiceError, StatusObject } from '@grpc/grpc-js';
import type { Call } from '../base/api.js';
import { failureFromTrailers } from '../wire/public-error.js';
import { METHOD_OF, encodeCall } from '../wire/public.js';
import type { Channel, Reply } from './channel.js';
import { GrpcConnection } from './grpc-connection.js';

/** Opens the channel to `endpoint`, `host:port`, with a call for each send. Connects with the first one. */
export function openGrpcChannel(endpoint: string): Channel {
  const connection = new GrpcConnection(endpoint);
  return {
    send: (call, timeoutMs, done) => sendUnary(connection, call, timeoutMs, done),
    close() {
      connection.close();
    },
  };
}

/** One call over a connection, as {@link Channel.send} has it. */
export function sendUnary(
  connection: GrpcConnection,
  call: Call,
  timeoutMs: number,
  done: (reply: Reply) => void,
): () => boolean {
  const through = connection.client();
  let open = true;
  const finish = (reply: Reply): void => {
    if (!open) return;
    open = false;
    unwatch();
    done(reply);
  };
  const unary = through.makeUnaryRequest(
    METHOD_OF[call.type].path,
    asIs,
    asIs,
    encodeCall(call),
    new Metadata(),
    { deadline: Date.now() + timeoutMs },
    (error: ServiceError | null, bytes?: Buffer) => {
      finish(
        error === null
          ? answerIn(call.type, bytes)
          : replyFor(error, connection.wasReady(through), Math.ceil(timeoutMs)),
      );
    },
  );
  const unwatch = connection.watch(through, (silent) => {
    finish(silent);
    unary.cancel();
  });
  return () => {
    const reached = connection.wasReady(through);
    if (!open) return reached;
    open = false;
    unwatch();
    unary.cancel();
    connection.dropUnlessReady(through);
    return reached;
  };
}

function asIs(bytes: Buffer): Buffer {
  return bytes;
}

function answerIn(type: keyof typeof METHOD_OF, bytes: Buffer | undefined): Reply {
  if (bytes === undefined) return { type: 'foreign', why: 'the answer has no message' };
  try {
    return { type: 'answer', ...METHOD_OF[type].responseDeserialize(bytes) };
  } catch (error) {
    return {
      type: 'foreign',
      why: `the answer cannot be read: ${error instanceof Error ? error.message : String(error)}`,
    };
  }
}

/** What a status means that came instead of an answer; `connected`: the call may have left. */
export function replyFor(
  error: StatusObject,
  connected: boolean,
  timeoutMs: number,
): Exclude<Reply, { type: 'answer' }> {
  const received = failureFromTrailers(error.details, error.metadata);
  if (received !== undefined) return { type: 'failure', ...received };
  switch (error.code) {
    // What gRPC itself says when a connection or a node breaks.
    case status.UNAVAILABLE:
    case status.DEADLINE_EXCEEDED:
    case status.CANCELLED:
    case status.UNKNOWN:
    case status.INTERNAL:
    case status.ABORTED:
    case status.DATA_LOSS:
    case status.OK:
      return { type: 'silent', reached: connected && !neverLeft(error), why: inPlainWords(error, timeoutMs) };
    // What no Fencepost node says without a reason of its own.
    case status.INVALID_ARGUMENT:
    case status.NOT_FOUND:
    case status.ALREADY_EXISTS:
    case status.PERMISSION_DENIED:
    case status.RESOURCE_EXHAUSTED:
    case status.FAILED_PRECONDITION:
    case status.OUT_OF_RANGE:
    case status.UNIMPLEMENTED:
    case status.UNAUTHENTICATED:
      return { type: 'foreign', why: `no Fencepost node answers there (${status[error.code]}: ${error.details})` };
  }
}

/** How grpc-js begins the details of a call that found no connection to leave by. */
const NO_CONNECTION = 'No connection established';
const NO_ADDRESS = 'Name resolution failed';

/** Said by grpc-js itself, not by the peer: what a peer says comes with headers. */
function neverLeft({ code, details, metadata }: StatusObject): boolean {
  return (
    code === status.UNAVAILABLE &&
    (details.startsWith(NO_CONNECTION) || details.startsWith(NO_ADDRESS)) &&
    Object.keys(metadata.getMap()).length === 0
  );
}

/** Texts for the system's names of what went wrong with a connection. */
const SYSTEM_ERRORS: Readonly<Record<string, string>> = {
  ECONNREFUSED: 'connection refused',
  ECONNRESET: 'the connection broke',
  EPIPE: 'the connection broke',
  ETIMEDOUT: 'no connection in time',
  EHOSTUNREACH: 'no route to this host',
  ENETUNREACH: 'no route to this network',
  ENOTFOUND: 'this host name is not known',
  EAI_AGAIN: 'this host name cannot be looked up now',
  EACCES: 'connecting is forbidden here',
};

function inPlainWords({ code, details }: StatusObject, timeoutMs: number): string {
  const system = /\bE[A-Z_]{3,}\b/.exec(details)?.[0];
  const known = system === undefined ? undefined : SYSTEM_ERRORS[system];
  if (known !== undefined) return known;
  if (details.startsWith(NO_ADDRESS)) return 'this host name is not known';
  if (details.startsWith(NO_CONNECTION)) return system === undefined ? 'no connection' : `no connection (${system})`;
  if (code === status.DEADLINE_EXCEEDED) return `no answer within ${timeoutMs} ms`;
  if (code === status.UNAVAILABLE || code === status.CANCELLED || details.startsWith('Received RST_STREAM'))
    return 'the connection broke';
  return `the call broke (${status[code]}: ${details})`;
}
