/** A running core as the invariants look at it, the same in both worlds. */
import { entriesBetween } from '../../src/raft/raft.js';
import type { Raft } from '../../src/raft/raft.js';
import * as view from '../../src/raft/view.js';
import type { Configuration, Entry, Member, Position } from '../../src/raft/types.js';
import type { NodeView } from './invariants.js';

/** The view of `raft`; who it is, which run of it this is, and what was applied, its world knows. */
export function viewOf(raft: Raft, known: Pick<NodeView, 'member' | 'run' | 'applied'>): NodeView {
  return new CoreView(raft, known);
}

/** Reads the core when it is asked: most looks need little of it. Good until the core's next step. */
class CoreView implements NodeView {
  readonly member: Member;
  readonly run: number;
  readonly applied: number;
  readonly #raft: Raft;

  constructor(raft: Raft, { member, run, applied }: Pick<NodeView, 'member' | 'run' | 'applied'>) {
    this.#raft = raft;
    this.member = member;
    this.run = run;
    this.applied = applied;
  }

  get role(): NodeView['role'] {
    return view.roleName(this.#raft);
  }

  get term(): number {
    return this.#raft.hard.term;
  }

  get commit(): number {
    return view.commitIndex(this.#raft);
  }

  get stable(): number {
    return view.stableIndex(this.#raft);
  }

  get last(): number {
    return view.lastIndex(this.#raft);
  }

  get anchor(): Position {
    return this.#raft.log.anchor;
  }

  get cut(): number {
    return this.#raft.snapshot.index;
  }

  get configuration(): Configuration {
    return view.configurationAt(this.#raft, this.last).configuration;
  }

  get matches(): NodeView['matches'] {
    return view.isLeader(this.#raft) ? view.followers(this.#raft) : [];
  }

  entries(from: number, to: number): readonly Entry[] {
    return to > from ? entriesBetween(this.#raft, from, to) : [];
  }
}
