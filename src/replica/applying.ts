/** Committed entries become state; each result goes to whoever waits for it, in this leader's own term only. */
import { assert } from '../base/assert.js';
import { revisionAt } from '../base/revision.js';
import { apply } from '../lease/apply.js';
import { createState } from '../lease/load.js';
import type { Applied } from '../lease/types.js';
import { entriesBetween, step } from '../raft/raft.js';
import type { Entry, SnapshotMeta } from '../raft/types.js';
import { audit } from './audit.js';
import { leaderTtl, startTiming, stopTiming } from './clock.js';
import { entryApplied, resetCuts } from './cuts.js';
import { settleCoolDowns } from './cooling.js';
import { becomeReady } from './leading.js';
import { tellOfLimits } from './limits.js';
import { answerEntry } from './serving.js';
import { log } from './state.js';
import type { Context, Leadership, PendingEntry } from './state.js';
import { newLeaderApplied } from './transfer.js';
import { countFreeing } from './passing.js';
import { settleWaits } from './waiting.js';
import { changesLost, noteChanges } from './watch-delivery.js';

/** Applies everything up to `index`, which is committed. */
export function applyUpTo(context: Context, index: number): void {
  for (const entry of entriesBetween(context.raft, context.applied, index)) applyEntry(context, entry);
  assert(context.applied === index, `applied ${context.applied} of ${index} committed`);
  step(context.raft, { type: 'applied', index });
}

/** The state machine is replaced by the snapshot that was received. */
export function restore(context: Context, meta: SnapshotMeta): void {
  const { incoming, genesis } = context;
  assert(
    incoming?.meta.index === meta.index && incoming.meta.term === meta.term,
    `no staged snapshot at ${meta.index}`,
  );
  assert(meta.index > context.applied, `snapshot at ${meta.index} is behind the applied ${context.applied}`);
  context.incoming = undefined;
  const revision = revisionAt(genesis.history, meta.index);
  const before = context.lease.limits;
  context.lease = createState(incoming.summary, genesis.history, revision, incoming.records);
  tellOfLimits(context, before);
  context.applied = meta.index;
  context.appliedTerm = meta.term;
  resetCuts(context, meta);
  changesLost(context, revision);
  // A cut of before is dropped by the store and never reported.
  context.watchdog.writes.delete('cut');
  step(context.raft, { type: 'applied', index: meta.index });
  log(context, 'info', 'installed a snapshot', { index: meta.index, records: incoming.records.length });
}

function applyEntry(context: Context, entry: Entry): void {
  assert(entry.index === context.applied + 1, `entry ${entry.index} follows applied ${context.applied}`);
  const { leadership } = context;
  const pending = takePending(leadership, entry);
  const command = entry.kind === 'command' ? (pending?.command ?? context.codec.decode(entry.payload)) : undefined;
  const revision = revisionAt(context.genesis.history, entry.index);
  const applied = apply(context.lease, { revision, term: entry.term }, command);
  context.applied = entry.index;
  context.appliedTerm = entry.term;
  entryApplied(context, entry);
  noteChanges(context, revision, applied);
  if (applied.result.type === 'limitsChanged') tellOfLimits(context, applied.result.before);
  newLeaderApplied(context, entry.term);
  if (leadership === undefined) return;
  if (leadership.ready !== undefined) settle(context, leadership, applied, pending, entry.index);
  else if (entry.term === leadership.term) {
    assert(entry.kind === 'noop', `the first entry of term ${entry.term} is a ${entry.kind}`);
    becomeReady(context, leadership);
  }
  audit(context, command, applied, revision);
}

function takePending(leadership: Leadership | undefined, entry: Entry): PendingEntry | undefined {
  const pending = leadership?.pending.get(entry.index);
  if (pending === undefined) return undefined;
  assert(
    pending.term === entry.term,
    `entry ${entry.index} of term ${entry.term} was proposed in term ${pending.term}`,
  );
  leadership?.pending.delete(entry.index);
  return pending;
}

/** The clock first, then the caller, then what waited for the fate of a lease. */
function settle(
  context: Context,
  leadership: Leadership,
  applied: Applied,
  pending: PendingEntry | undefined,
  index: number,
): void {
  countFreeing(leadership, pending?.frees ?? [], -1);
  const released = applied.ended.flatMap(({ lease }) => stopTiming(leadership.clock, lease.domain, lease.token));
  // A waiter's time begins when it is granted; its call may have come long before.
  const { nowMs } = context.time;
  const from = applied.left.length > 0 ? nowMs : (pending?.served?.arrivedAt ?? nowMs);
  for (const lease of applied.granted) startTiming(leadership.clock, lease, from, leaderTtl(lease.ttlMs));
  settleCoolDowns(context, leadership, applied);
  settleWaits(context, leadership, applied, index);
  if (pending !== undefined) {
    const { command } = pending;
    if (command.type === 'expire' || command.type === 'checkpoint') leadership.timedOnTheWay -= command.leases.length;
    assert(leadership.timedOnTheWay >= 0, `${leadership.timedOnTheWay} leases are on their way`);
    answerEntry(context, leadership, pending, applied);
    pending.resume?.();
    watchSeen(context, pending);
  }
  for (const resume of released) resume();
}

/** A client that has seen more than this leader ever applied: history was lost, or it speaks of another one (S7). */
function watchSeen(context: Context, pending: PendingEntry): void {
  const { command } = pending;
  if (command.type !== 'acquire' || command.seenRevision <= context.lease.revision || context.alarms.has('seen'))
    return;
  const text =
    `a client has seen revision ${command.seenRevision}, above ${context.lease.revision} of this leader: ` +
    'members may have been rolled back to copies (replace them), or the client still speaks of a cluster from before a restore';
  context.alarms.set('seen', text);
  log(context, 'error', text);
}
