/** The consensus core: made from what the disk holds, then driven by `step` and `settle`. `view.ts` reads it. */
import { assert } from '../base/assert.js';
import { crc32c } from '../base/digest.js';
import { createRandom } from '../base/random.js';
import { encodeUtf8 } from '../base/utf8.js';
import { adopt, startConfigurations } from './configuration.js';
import { appendEntry, entriesIn, lastIndexOf, lastPosition, termAt } from './log.js';
import type { Log } from './log.js';
import { keyOf } from './member.js';
import { createPersistence } from './persist.js';
import { drawTimeout } from './role.js';
import type { Raft } from './state.js';
import type { Entry, RaftOptions, Restored } from './types.js';

export { hashState } from './hash.js';
export { settle } from './settle.js';
export type { Raft } from './state.js';
export { step } from './step.js';

/**
 * A follower with the state that the disk holds. Everything else is forgotten: a crash must not matter, so a leader
 * never resumes its term (P5), and nothing above the newest cut counts as committed until a leader says so.
 */
export function createRaft(options: RaftOptions, restored: Restored): Raft {
  checkOptions(options);
  const { hard, snapshot } = restored;
  const configurations = startConfigurations(snapshot);
  const log: Log = { anchor: restored.anchor, entries: [] };
  for (const entry of restored.entries) {
    appendEntry(log, entry);
    if (entry.index > snapshot.index) adopt(configurations, entry);
  }
  const last = lastPosition(log);
  assert(hard.term >= last.term, `term ${hard.term} was restored with a log that ends in term ${last.term} (P4)`);
  assert(
    termAt(log, snapshot.index) === snapshot.term,
    `the cut at ${snapshot.index}, term ${snapshot.term}, is not in the restored log from ${log.anchor.index} to ${last.index}`,
  );
  const key = keyOf(options.self);
  // Members that were given one seed must still draw different time-outs (E6).
  const random = createRandom(options.seed ^ crc32c(encodeUtf8(key)));
  return {
    options,
    key,
    random,
    effects: [],
    ticks: 0,
    hard,
    role: { type: 'follower' },
    leader: undefined,
    log,
    configurations,
    commit: snapshot.index,
    applied: snapshot.index,
    snapshot,
    persistence: createPersistence(lastIndexOf(log), hard.term),
    timer: { elapsed: 0, timeout: drawTimeout(random, options), heardAt: undefined },
    early: { dueAt: undefined, term: undefined, lastAt: undefined },
    attempt: 0,
    expelled: false,
    stalled: false,
    diskLow: false,
  };
}

/** The entries after `fromExclusive` up to and including `toInclusive`, for whoever applies them. Both must be in the kept log. */
export function entriesBetween(raft: Raft, fromExclusive: number, toInclusive: number): readonly Entry[] {
  assert(fromExclusive <= toInclusive, `entries after ${fromExclusive} up to ${toInclusive} were asked for`);
  return entriesIn(raft.log, fromExclusive, toInclusive);
}

function checkOptions(options: RaftOptions): void {
  const { heartbeatTicks, electionMinTicks, electionMaxTicks } = options;
  assert(heartbeatTicks >= 1, `heartbeatTicks must be at least 1, not ${heartbeatTicks}`);
  assert(electionMinTicks > heartbeatTicks, `electionMinTicks ${electionMinTicks} must exceed ${heartbeatTicks}`);
  assert(electionMaxTicks >= electionMinTicks, `electionMaxTicks ${electionMaxTicks} must reach ${electionMinTicks}`);
  assert(options.maxInflightAppends >= 1 && options.maxInflightBytes >= 1, 'the windows must let one append through');
  assert(options.maxAppendBytes >= 1, 'an append must have room for an entry');
}
