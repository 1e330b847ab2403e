/**
 * One gRPC connection to one endpoint, for both kinds of channel. Adds to grpc-js what it lacks: a limit on connecting,
 * because a peer that accepts and stays silent keeps a grpc-js channel connecting for ever (grpc-node #2785, seen on
 * 1.14; `grpc-channel.test.ts` fails without the watchdog; remove it when that is fixed).
 */
import { Client, connectivityState, credentials } from '@grpc/grpc-js';
import type { ChannelOptions } from '@grpc/grpc-js';
import type { Reply } from './channel.js';

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

/** See the head of the file. */
export class GrpcConnection {
  readonly #endpoint: string;
  #client: Client | undefined;
  #closed = false;
  /** Clients that were connected at least once: only through them can a call have left. */
  readonly #wasReady = new WeakSet<Client>();

  /** `endpoint` is `host:port`. Connects with the first call. */
  constructor(endpoint: string) {
    this.#endpoint = endpoint;
  }

  /** To make a call with: the one there is, or a new one. Throws when the connection was closed. */
  client(): Client {
    if (this.#closed) throw new Error(`the channel to ${this.#endpoint} is closed`);
    if (this.#client !== undefined) return this.#client;
    const made = new Client(this.#endpoint, credentials.createInsecure(), CHANNEL_OPTIONS);
    // Called at each change, before anything else can happen: a short connection is not missed.
    const watch = (): void => {
      const state = made.getChannel().getConnectivityState(false);
      if (state === connectivityState.READY) this.#wasReady.add(made);
      else if (state !== connectivityState.SHUTDOWN) made.getChannel().watchConnectivityState(state, Infinity, watch);
    };
    watch();
    this.#client = made;
    return made;
  }

  /** False only when no call made with it can have left. */
  wasReady(client: Client): boolean {
    return this.#wasReady.has(client);
  }

  /** Calls `hung` once if `client` is not connected within a second, and drops it. The returned function ends the watch. */
  watch(client: Client, hung: (reply: Extract<Reply, { readonly type: 'silent' }>) => void): () => void {
    const watchdog = setTimeout(() => {
      if (isReady(client)) return;
      hung({ type: 'silent', reached: this.wasReady(client), why: `no connection within ${CONNECT_MS} ms` });
      this.#drop(client);
    }, CONNECT_MS);
    watchdog.unref();
    return () => {
      clearTimeout(watchdog);
    };
  }

  /**
   * A call was given up: a connection that has not come about by then is not waited for by the next one. True when it was
   * dropped.
   */
  dropUnlessReady(client: Client): boolean {
    if (this.#closed || this.#client !== client || isReady(client)) return false;
    this.#drop(client);
    return true;
  }

  /** Ends the connection, and every call on it. */
  close(): void {
    this.#closed = true;
    this.#client?.close();
    this.#client = undefined;
  }

  /** Ends a connection that does not come about; the next call makes a new one. */
  #drop(hung: Client): void {
    hung.close();
    if (this.#client === hung) this.#client = undefined;
  }
}

function isReady(client: Client): boolean {
  return client.getChannel().getConnectivityState(true) === connectivityState.READY;
}
