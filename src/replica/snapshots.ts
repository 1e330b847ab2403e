/**
 * Snapshots on their way in and out (design 6). In: chunks are staged one by one, each synced; the core decides when
 * all are there. A transfer is named by (sender, term, request); an unexpected chunk ends it (S5 of the catalogue).
 */
import { assert } from '../base/assert.js';
import { keyOf } from '../raft/member.js';
import { step } from '../raft/raft.js';
import type { Effect as RaftEffect, Member } from '../raft/types.js';
import { isInstalling } from '../raft/view.js';
import type { Context } from './state.js';
import type { SnapshotChunk } from './types.js';

/** For so many greatest election time-outs the log behind a snapshot that has arrived is kept (S4.4). */
const KEEP_BEHIND = 2;

/** The core wants a follower to get the newest cut. */
export function sendSnapshot(context: Context, effect: Extract<RaftEffect, { type: 'sendSnapshot' }>): void {
  const { to, request } = effect;
  context.outgoing.set(keyOf(to), { to, index: context.cuts.durable, keepUntil: undefined });
  context.out.push({ type: 'sendSnapshot', to, term: context.raft.hard.term, request });
}

/** A transfer to a follower ended. */
export function snapshotSent(context: Context, to: Member, index: number, ok: boolean): RaftEffect[] {
  const { outgoing, options, time } = context;
  const key = keyOf(to);
  const sent = outgoing.get(key);
  if (sent !== undefined && ok) {
    outgoing.set(key, { ...sent, keepUntil: time.nowMs + KEEP_BEHIND * options.electionMaxMs });
  } else outgoing.delete(key);
  return step(context.raft, { type: 'snapshotSent', to, index, ok });
}

/** A chunk arrived. */
export function takeChunk(context: Context, from: Member, chunk: SnapshotChunk): void {
  const { term, request, sequence, meta, summary, records, total } = chunk;
  if (term < context.raft.hard.term) {
    refuse(context, from, chunk, `a snapshot of term ${term}; this node is in term ${context.raft.hard.term}`);
    return;
  }
  if (isInstalling(context.raft)) {
    // Staging anew would empty what the switch, which may wait behind another write, is about to use.
    refuse(context, from, chunk, 'a snapshot is being installed; send again when it is done');
    return;
  }
  if (sequence === 0) context.incoming = { from, term, request, meta, summary, records: [], next: 0, last: undefined };
  const { incoming } = context;
  if (
    incoming === undefined ||
    keyOf(incoming.from) !== keyOf(from) ||
    incoming.term !== term ||
    incoming.request !== request ||
    incoming.meta.index !== meta.index ||
    incoming.next !== sequence ||
    incoming.last !== undefined
  ) {
    refuse(context, from, chunk, `chunk ${sequence} of transfer ${request} was not expected`);
    return;
  }
  incoming.next++;
  for (const record of records) incoming.records.push(record);
  if (total !== undefined) {
    if (incoming.records.length !== total.count) {
      context.incoming = undefined;
      refuse(
        context,
        from,
        chunk,
        `the snapshot has ${incoming.records.length} records and should have ${total.count}`,
      );
      return;
    }
    incoming.last = sequence;
  }
  context.out.push({ type: 'stage', chunk });
}

/** A staged chunk is durable. After the last one the core decides; its reply goes the usual way. */
export function chunkStaged(context: Context, request: number, sequence: number): RaftEffect[] {
  const { incoming, options } = context;
  if (incoming?.request !== request || incoming.last !== sequence) return [];
  const { from, term, meta } = incoming;
  context.out.push({ type: 'chunksDone', from, request });
  return step(context.raft, {
    type: 'message',
    message: { type: 'installSnapshot', from, to: options.self, term, meta, request },
  });
}

/** The connection on which chunks came ended. What is staged already may still be installed. */
export function chunksEnded(context: Context, from: Member): void {
  const { incoming } = context;
  if (incoming !== undefined && keyOf(incoming.from) === keyOf(from) && incoming.last === undefined)
    context.incoming = undefined;
}

/** The core does not want what was staged. */
export function snapshotRefused(context: Context): void {
  assert(context.incoming?.last !== undefined, 'a snapshot is refused that was not staged');
  context.incoming = undefined;
}

function refuse(context: Context, from: Member, { term, request }: SnapshotChunk, reason: string): void {
  // Its connection ends with that, and nobody tells: what has come of that transfer would be kept for ever.
  if (context.incoming?.term === term && context.incoming.request === request) chunksEnded(context, from);
  context.out.push({ type: 'refuseChunks', from, reason });
}
