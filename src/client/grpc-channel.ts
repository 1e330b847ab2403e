/**
 * The real {@link Channel}: one gRPC connection to one endpoint. Adds to grpc-js what it lacks: a limit on connecting,
 * because a peer that accepts and stays silent keeps a grpc-js channel connecting for ever (grpc-node #2785, seen on
 * 1.14; `grpc-channel.test.ts` fails without the watchdog; remove it when that is fixed).
 */
import { Client, Metadata, connectivityState, credentials, status } from '@grpc/grpc-js';
import type { ChannelOptions, ServiceError } from '@grpc/grpc-js';
import { failureFromTrailers } from '../wire/public-error.js';
import { METHOD_OF, encodeCall } from '../wire/public.js';
import type { Channel, Reply } from './channel.js';

/** How long a connection may take, with its HTTP/2 greeting, in milliseconds. */
export const CONNECT_MS = 1_000;

/** Of every connection of this package. */
export const CHANNEL_OPTIONS: ChannelOptions = {
  // A call is repeated by the client's own rules, with the moment of each send known.
  'grpc.enable_retries': 0,
  'grpc.service_config_disable_resolution': 1,
  // Two clients in one process must not share a connection, and its end.
  'grpc.use_local_subchannel_pool': 1,
  'grpc.enable_channelz': 0,
  // A proxy from the environment would take even loopback addresses.
  'grpc.enable_http_proxy': 0,
  'grpc.keepalive_time_ms': 20_000,
  'grpc.keepalive_timeout_ms': 5_000,
  'grpc.initial_reconnect_backoff_ms': 100,
  'grpc.min_reconnect_backoff_ms': 100,
  'grpc.max_reconnect_backoff_ms': 1_000,
  'grpc.dns_min_time_between_resolutions_ms': 5_000,
};

/** Opens the channel to `endpoint`, `host:port`. Connects with the first call. */
export function openGrpcChannel(endpoint: string): Channel {
  let client: Client | undefined;
  let closed = false;
  /** Clients that were connected at least once: only through them can a call have left. */
  const connected = new WeakSet<Client>();

  const ready = (candidate: Client): boolean =>
    candidate.getChannel().getConnectivityState(true) === connectivityState.READY;
  const current = (): Client => {
    if (client !== undefined) return client;
    const made = new Client(endpoint, credentials.createInsecure(), CHANNEL_OPTIONS);
    // Called at each change, before anything else can happen: a short connection is not missed.
    const watch = (): void => {
      const state = made.getChannel().getConnectivityState(false);
      if (state === connectivityState.READY) connected.add(made);
      else if (state !== connectivityState.SHUTDOWN) made.getChannel().watchConnectivityState(state, Infinity, watch);
    };
    watch();
    client = made;
    return made;
  };
  /** Ends a connection that does not come about; the next call makes a new one. */
  const drop = (hung: Client): void => {
    hung.close();
    if (client === hung) client = undefined;
  };

  return {
    send(call, timeoutMs, done) {
      if (closed) throw new Error(`the channel to ${endpoint} is closed`);
      const through = current();
      let open = true;
      const finish = (reply: Reply): void => {
        if (!open) return;
        open = false;
        clearTimeout(watchdog);
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
            error === null ? answerIn(call.type, bytes) : replyFor(error, connected.has(through), Math.ceil(timeoutMs)),
          );
        },
      );
      const watchdog = setTimeout(() => {
        if (ready(through)) return;
        finish({ type: 'silent', reached: connected.has(through), why: `no connection within ${CONNECT_MS} ms` });
        unary.cancel();
        drop(through);
      }, CONNECT_MS);
      watchdog.unref();
      return () => {
        const reached = connected.has(through);
        if (!open) return reached;
        open = false;
        clearTimeout(watchdog);
        unary.cancel();
        if (!closed && client === through && !ready(through)) drop(through);
        return reached;
      };
    },
    close() {
      closed = true;
      client?.close();
      client = undefined;
    },
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

/** What a call that ended with an error tells; `connected`: it may have reached the peer. */
export function replyFor(
  error: ServiceError,
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
function neverLeft({ code, details, metadata }: ServiceError): boolean {
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

function inPlainWords({ code, details }: ServiceError, timeoutMs: number): string {
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
