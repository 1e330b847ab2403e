/** Watching, as plain data: what `Watch` in `proto/fencepost/v1/lease.proto` says. The comments there are the reference. */
import type { EndedView, LeaseRef, LeaseView } from './api.js';
import type { Domain } from './ids.js';
import type { Revision } from './revision.js';

/** Asks for changes. Checked. */
export interface WatchCall {
  /** Byte prefix of the names; '' for all. */
  readonly prefix: string;
  /** The first revision of interest; 0 means from now on. */
  readonly startRevision: Revision;
}

/** One change, at the revision that made it. */
export type ChangeView = { readonly revision: Revision } & (
  | { readonly type: 'granted'; readonly lease: LeaseView }
  /** `currentToken`: the token under which the domain lives on after this very revision, 0 if nobody was handed it. */
  | { readonly type: 'ended'; readonly ended: EndedView & { readonly lease: LeaseRef } }
  /** The number of waiters of a domain, or of a counting name, is now `queueLength`. */
  | { readonly type: 'queueChanged'; readonly domain: Domain; readonly queueLength: number }
);

/** One message of a watch; the revision in its header says up to where the watcher then knows everything. */
export type WatchNews =
  /** Oldest first, at least one. */
  | { readonly type: 'events'; readonly events: readonly ChangeView[] }
  | { readonly type: 'progress' }
  /** The last message: what was asked for lies before `oldest`, the oldest revision that can be asked for. */
  | { readonly type: 'compacted'; readonly oldest: Revision };
