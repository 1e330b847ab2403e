/**
 * When the state is cut, and how much log stays behind a cut (design 6, State table; F4, S4). A cut is the state at
 * exactly one applied index, and never overtakes the log's queue: its index is at or below what was handed to it (S2.4).
 * What a conflict cut does not count, though a write under way still holds it: the core knows.
 */
import { assert } from '../base/assert.js';
import { changedBytes, takeChanges } from '../lease/records.js';
import { entriesBetween, step } from '../raft/raft.js';
import type { Entry, SnapshotMeta } from '../raft/types.js';
import { configurationAt, handedIndex } from '../raft/view.js';
import { log } from './state.js';
import type { Context, CutState } from './state.js';

/** Bytes charged to an entry beside its payload. */
const ENTRY_OVERHEAD = 32;

/** Nothing cut since the start. */
export function createCuts(snapshotIndex: number, anchorIndex: number): CutState {
  return {
    durable: snapshotIndex,
    underWay: undefined,
    dirtySince: undefined,
    keepFrom: anchorIndex + 1,
    keptBytes: 0,
  };
}

/** An entry was applied. */
export function entryApplied(context: Context, entry: Entry): void {
  const { cuts } = context;
  cuts.dirtySince ??= context.time.nowMs;
  cuts.keptBytes += entry.payload.length + ENTRY_OVERHEAD;
}

/** Cuts when one is due: called after the log's writes of this step were handed over. */
export function cutIfDue(context: Context): void {
  const { cuts, applied, options } = context;
  if (cuts.underWay !== undefined || cuts.dirtySince === undefined || applied > handedIndex(context.raft)) return;
  const aged = context.time.nowMs - cuts.dirtySince >= options.cutMs;
  if (!aged && changedBytes(context.lease) < options.cutBytes) return;
  const { configuration, index } = configurationAt(context.raft, applied);
  const meta: SnapshotMeta = { index: applied, term: context.appliedTerm, configuration, configurationIndex: index };
  advanceKeepFrom(context);
  cuts.dirtySince = undefined;
  cuts.underWay = { meta, keepFrom: cuts.keepFrom };
  context.out.push({ type: 'cut', cut: { meta, changes: takeChanges(context.lease), keepFrom: cuts.keepFrom } });
}

/** The cut under way is durable: it may be sent, and what lies behind it need not be kept. */
export function cutWritten(context: Context, index: number): void {
  const { cuts, raft } = context;
  const { underWay } = cuts;
  // A cut of before an installed snapshot was dropped by the store; it may still report the index (S4.2).
  if (underWay?.meta.index !== index) return;
  cuts.underWay = undefined;
  assert(index >= cuts.durable, `cut at ${index} is behind the durable one at ${cuts.durable}`);
  cuts.durable = index;
  step(raft, { type: 'snapshotTaken', meta: underWay.meta });
  if (underWay.keepFrom > raft.log.anchor.index + 1) step(raft, { type: 'compact', index: underWay.keepFrom - 1 });
}

/** A snapshot replaced state and log. */
export function resetCuts(context: Context, meta: SnapshotMeta): void {
  Object.assign(context.cuts, createCuts(meta.index, meta.index));
}

/**
 * Moves the first kept index forward while more than the limit lies between it and `applied`; not past what a snapshot
 * that is under way, or has just arrived, will need, up to a limit of its own, which ends the transfer instead (S4.4).
 */
function advanceKeepFrom(context: Context): void {
  const { cuts, options, outgoing, applied } = context;
  let needed = Infinity;
  for (const [key, { index, keepUntil }] of outgoing) {
    if (keepUntil !== undefined && keepUntil <= context.time.nowMs) outgoing.delete(key);
    else needed = Math.min(needed, index + 1);
  }
  if (needed <= applied && cuts.keptBytes > options.logKeepTransferBytes) {
    for (const { to, index, keepUntil } of outgoing.values()) {
      if (keepUntil !== undefined) continue;
      log(context, 'warn', 'ended a snapshot transfer that kept too much log', {
        to: to.node,
        limit: options.logKeepTransferBytes,
      });
      context.out.push({ type: 'abortSnapshot', to });
      // Nobody reports a transfer that was aborted: the core tries again after a sign of life.
      step(context.raft, { type: 'snapshotSent', to, index, ok: false });
    }
    outgoing.clear();
    needed = Infinity;
  }
  if (cuts.keptBytes <= options.logKeepBytes) return;
  for (const entry of entriesBetween(context.raft, cuts.keepFrom - 1, applied)) {
    if (cuts.keptBytes <= options.logKeepBytes || entry.index >= needed) break;
    cuts.keptBytes -= entry.payload.length + ENTRY_OVERHEAD;
    cuts.keepFrom = entry.index + 1;
  }
}
