/**
 * Who watches at this node, and for how long (design 8; research/peers 3F). A watch is served from what this node has
 * applied, by any node. It ends when its node knows no leader for an election time-out, stops, or cannot reach the start;
 * what a watcher takes here is a few words, however slow it is: the changes are kept once, in the ring.
 */
import { assert } from '../base/assert.js';
import { failure } from '../base/errors.js';
import type { Failure } from '../base/errors.js';
import { WATCH_AHEAD_MS, WATCH_PROGRESS_MS } from '../base/limits.js';
import { revisionAt, ZERO_REVISION } from '../base/revision.js';
import type { Revision } from '../base/revision.js';
import type { WatchNews } from '../base/watch.js';
import { leaderOf } from '../raft/view.js';
import { headerAt } from './header.js';
import type { Context } from './state.js';
import type { Event, WatchId } from './types.js';
import { addWatcher, dropWatcher, next } from './watchers.js';
import type { Watcher } from './watchers.js';

/** A client wants to watch here. */
export function openWatch(context: Context, event: Extract<Event, { type: 'watch' }>): void {
  const { watching, time } = context;
  const { id, principal, call } = event;
  assert(!watching.streams.has(id), `watch ${id} is open already`);
  const count = watching.principals.get(principal.name) ?? 0;
  const refusal = refusalOf(context, principal.name, count);
  if (refusal !== undefined) {
    context.out.push({ type: 'watchFailed', id, failure: refusal });
    return;
  }
  watching.streams.set(id, principal.name);
  watching.principals.set(principal.name, count + 1);
  const { prefix, startRevision } = call;
  const applied = appliedRevision(context);
  const from = startRevision === ZERO_REVISION ? next(applied) : startRevision;
  const watcher: Watcher = {
    id,
    prefix,
    from,
    skip: 0,
    behind: from <= applied,
    ready: true,
    sentAt: -Infinity,
    since: time.nowMs,
  };
  addWatcher(watching, watcher);
}

/** The message that was sent has left. */
export function watchReady({ watching }: Context, id: WatchId): void {
  const watcher = watching.watchers.get(id);
  if (watcher === undefined) return;
  assert(!watcher.ready, `watch ${id} is ready twice`);
  watcher.ready = true;
  if (watcher.behind) watching.due.add(watcher);
}

/** Its stream is closed; or that of a watch that was refused, which took nothing. */
export function watchClosed({ watching }: Context, id: WatchId): void {
  const watcher = watching.watchers.get(id);
  if (watcher !== undefined) dropWatcher(watching, watcher);
  const principal = watching.streams.get(id);
  if (principal === undefined) return;
  watching.streams.delete(id);
  const left = (watching.principals.get(principal) ?? 0) - 1;
  if (left > 0) watching.principals.set(principal, left);
  else watching.principals.delete(principal);
}

/** Sends a message; the next one waits until it has left. */
export function sendNews(context: Context, watcher: Watcher, revision: Revision, news: WatchNews): void {
  const { id } = watcher;
  assert(watcher.ready, `watch ${id} is sent to while a message is under way`);
  context.out.push({ type: 'watchNews', id, header: headerAt(context, revision), news });
  watcher.ready = false;
  watcher.sentAt = context.time.nowMs;
  if (news.type === 'compacted') dropWatcher(context.watching, watcher);
}

/** Progress marks, and the ends that time brings. Called at each tick. */
export function scanWatchers(context: Context): void {
  const { watching, time } = context;
  const { nowMs } = time;
  if (leaderOf(context.raft) !== undefined) watching.leaderlessSince = undefined;
  else watching.leaderlessSince ??= nowMs;
  if (isLeaderless(context)) {
    endWatchers(context, noLeader(context));
    return;
  }
  const applied = appliedRevision(context);
  for (const watcher of watching.watchers.values()) {
    if (watcher.behind) continue;
    if (watcher.from > next(applied)) {
      if (nowMs - watcher.since >= WATCH_AHEAD_MS) fail(context, watcher, nodeBehind(context, watcher.from, applied));
    } else if (watcher.ready && nowMs - watcher.sentAt >= WATCH_PROGRESS_MS) {
      sendNews(context, watcher, applied, { type: 'progress' });
    }
  }
}

/** Every watch ends. */
export function endWatchers(context: Context, why: Failure): void {
  for (const watcher of context.watching.watchers.values()) fail(context, watcher, why);
}

/** The node stops. */
export function stoppingWatch({ options }: Context): Failure {
  const message = `node ${options.self.node} is stopping; watch at another node, from the last revision seen`;
  return failure('SHUTTING_DOWN', message, { outcome: 'not-done' });
}

/** The revision of the last entry applied. */
export function appliedRevision({ genesis, applied }: Context): Revision {
  return revisionAt(genesis.history, applied);
}

function refusalOf(context: Context, principal: string, count: number): Failure | undefined {
  const { watch } = context.options;
  if (context.stopping !== undefined) return stoppingWatch(context);
  if (isLeaderless(context)) return noLeader(context);
  if (count >= watch.watchersPerPrincipal) return over(principal, watch.watchersPerPrincipal);
  if (context.watching.streams.size >= watch.watchers) return over(`node ${context.options.self.node}`, watch.watchers);
  return undefined;
}

function over(of: string, limit: number): Failure {
  return failure('QUOTA_EXCEEDED', `${of} has as many watchers as it may: ${limit}`);
}

function isLeaderless({ watching, options, time }: Context): boolean {
  const since = watching.leaderlessSince;
  return since !== undefined && time.nowMs - since >= options.electionMaxMs;
}

function noLeader({ options }: Context): Failure {
  const message = `node ${options.self.node} has known no leader for ${options.electionMaxMs} ms; watch at another node, from the last revision seen`;
  return failure('NO_LEADER', message);
}

function nodeBehind({ options }: Context, from: Revision, applied: Revision): Failure {
  const message = `the watch starts at revision ${from}; node ${options.self.node} has applied up to ${applied}`;
  return failure('NODE_BEHIND', message);
}

function fail(context: Context, watcher: Watcher, why: Failure): void {
  dropWatcher(context.watching, watcher);
  context.out.push({ type: 'watchFailed', id: watcher.id, failure: why });
}
