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
const CONNECT_MS = 1_000;

const OPTIONS: ChannelOptions = {
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

  const ready = (candidate: Client): boolean =>
    candidate.getChannel().getConnectivityState(true) === connectivityState.READY;
  const current = (): Client => (client ??= new Client(endpoint, credentials.createInsecure(), OPTIONS));
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
          finish(error === null ? answerIn(call.type, bytes) : replyFor(error));
        },
      );
      const watchdog = setTimeout(() => {
        if (ready(through)) return;
        finish({ type: 'silent', why: `no connection within ${CONNECT_MS} ms` });
        unary.cancel();
        drop(through);
      }, CONNECT_MS);
      watchdog.unref();
      return () => {
        if (!open) return;
        open = false;
        clearTimeout(watchdog);
        unary.cancel();
        if (!closed && client === through && !ready(through)) drop(through);
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

function replyFor(error: ServiceError): Reply {
  const received = failureFromTrailers(error.details, error.metadata);
  if (received !== undefined) return { type: 'failure', ...received };
  const why = `${status[error.code]}: ${error.details}`;
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
      return { type: 'silent', why };
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
      return { type: 'foreign', why };
  }
}
