/**
 * The way to watch at one endpoint: one connection for one watch, no retry, no choice. `grpc-watch.ts` is the real one.
 * A watch has its connection for itself: what its reader leaves unread must not hold up a renewal.
 */
import type { WatchCall } from '../base/watch.js';
import type { ReadWatchMessage } from '../wire/public-watch.js';
import type { Reply } from './channel.js';

/** How a watch ended: as the server wanted, or as a call that failed. */
export type WatchEnd = { readonly type: 'ended' } | Exclude<Reply, { readonly type: 'answer' }>;

/** Whom a watch tells. Nothing is told before it is opened, nor after its end. */
export interface WatchListener {
  message(message: ReadWatchMessage): void;
  /** Called once, unless it was closed before. */
  end(end: WatchEnd): void;
}

/** A watch under way. */
export interface OpenedWatch {
  /** Reads no more than is read already, a few messages, until {@link resume}; then the server waits. */
  pause(): void;
  resume(): void;
  close(): void;
}

/** Watches at an endpoint, `host:port`. */
export type OpenWatch = (endpoint: string, call: WatchCall, listener: WatchListener) => OpenedWatch;
