/** A running core as the invariants look at it, the same in both worlds. */
import { entriesBetween } from '../../src/raft/raft.js';
import type { Raft } from '../../src/raft/raft.js';
import * as view from '../../src/raft/view.js';
import type { NodeView } from './invariants.js';

/** The view of `raft`; who it is, which run of it this is, and what was applied, its world knows. */
export function viewOf(raft: Raft, known: Pick<NodeView, 'member' | 'run' | 'applied'>): NodeView {
  const role = view.roleName(raft);
  const last = view.lastIndex(raft);
  return {
    ...known,
    role,
    term: raft.hard.term,
    commit: view.commitIndex(raft),
    stable: view.stableIndex(raft),
    last,
    anchor: raft.log.anchor,
    cut: raft.snapshot.index,
    configuration: view.configurationAt(raft, last).configuration,
    entries: (from, to) => (to > from ? entriesBetween(raft, from, to) : []),
    matches: role === 'leader' ? view.followers(raft) : [],
  };
}
