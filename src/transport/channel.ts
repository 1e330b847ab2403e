/**
 * What both sides of the peer port share: the methods, as paths over raw bytes, and the options of clients and server.
 * Frames are encoded and decoded in `wire/`; gRPC only carries them.
 */
import type * as grpc from '@grpc/grpc-js';
import { AssertionFailed } from '../base/assert.js';

/** Limit of one frame in either direction, in bytes. Frames are gathered far below it. */
export const MAX_FRAME_BYTES = 4 * 1024 * 1024;
/** How long a connection may be connecting, or a stream open without an answer to its hello, in milliseconds. */
export const CONNECT_TIMEOUT_MS = 2_000;
/** How long {@link grpc.Client}s and streams get to end by themselves when the node stops, in milliseconds. */
export const CLOSE_GRACE_MS = 500;

/** The streams that stay open as long as both nodes live. Each has a connection of its own. */
export type LaneKind = 'control' | 'append' | 'forward';

/** gRPC paths of the peer service, `proto/fencepost/internal/v1/peer.proto`. */
export const PATHS = {
  control: '/fencepost.internal.v1.PeerService/Control',
  append: '/fencepost.internal.v1.PeerService/Append',
  forward: '/fencepost.internal.v1.PeerService/Forward',
  snapshot: '/fencepost.internal.v1.PeerService/InstallSnapshot',
  form: '/fencepost.internal.v1.PeerService/Form',
} as const;

/** A server's view of a stream over raw bytes. */
export type ServerStream = grpc.ServerDuplexStream<Buffer, Buffer>;
/** A client's view of a stream over raw bytes. */
export type ClientStream = grpc.ClientDuplexStream<Buffer, Buffer>;

const KEEPALIVE_MS = 5_000;

/** Options of every connection to a peer. Each key is one that grpc-js reads; a test holds them to its list. */
export const CLIENT_OPTIONS = {
  // Clients with equal options would share one connection, and entries would stand in front of heartbeats.
  'grpc.use_local_subchannel_pool': 1,
  // http_proxy and its like must not reroute peers, not even on loopback.
  'grpc.enable_http_proxy': 0,
  'grpc.service_config_disable_resolution': 1,
  // Raft repeats what is lost, and a forwarded call must not be sent twice behind our back.
  'grpc.enable_retries': 0,
  'grpc.initial_reconnect_backoff_ms': 50,
  'grpc.max_reconnect_backoff_ms': 1_000,
  'grpc.dns_min_time_between_resolutions_ms': 50,
  'grpc.keepalive_time_ms': KEEPALIVE_MS,
  'grpc.keepalive_timeout_ms': KEEPALIVE_MS,
  'grpc.max_receive_message_length': MAX_FRAME_BYTES,
  'grpc.max_send_message_length': MAX_FRAME_BYTES,
  'grpc.enable_channelz': 0,
} as const satisfies grpc.ClientOptions;

/** Options of the peer listener. */
export const SERVER_OPTIONS = {
  'grpc.max_receive_message_length': MAX_FRAME_BYTES,
  'grpc.max_send_message_length': MAX_FRAME_BYTES,
  'grpc.keepalive_time_ms': KEEPALIVE_MS,
  'grpc.keepalive_timeout_ms': KEEPALIVE_MS,
  // A peer opens one stream a connection; a few more leave room for one that replaces another.
  'grpc.max_concurrent_streams': 16,
  // Megabytes that one connection may hold in buffers.
  'grpc-node.max_session_memory': 32,
  'grpc.enable_channelz': 0,
} as const satisfies grpc.ServerOptions;

/** grpc-js asks for functions between messages and bytes; the messages here are the bytes. */
export function identity(bytes: Buffer): Buffer {
  return bytes;
}

/** `bytes` as the Buffer that grpc-js wants, without a copy. */
export function asBuffer(bytes: Uint8Array): Buffer {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
}

/** Where a line for the log goes. */
export type Log = (
  level: 'info' | 'warn' | 'error',
  message: string,
  fields: Readonly<Record<string, string | number>>,
) => void;

/**
 * What became of something thrown while a frame was handled: a failed assertion is a defect of this process and goes to
 * its last handler; anything else is the text of a fault of the other end.
 */
export function faultOf(error: unknown): string {
  if (error instanceof AssertionFailed) {
    queueMicrotask(() => {
      throw error;
    });
  }
  return messageOf(error);
}

/** The text of whatever was thrown. */
export function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
