/** What must hold in every run: the properties of the Raft paper, and that nothing is said that the disk does not hold. */
import { keyOf } from '../../src/raft/member.js';
import { entriesBetween } from '../../src/raft/raft.js';
import type { Raft } from '../../src/raft/raft.js';
import type { Entry, LogWrite, Member, Message, Position, Restored } from '../../src/raft/types.js';
import { termOf } from '../../src/raft/view.js';

/** Thrown when something that must hold does not. */
export class Violation extends Error {}

/** Throws {@link Violation} unless `condition` holds. */
export function check(condition: boolean, message: string): asserts condition {
  if (!condition) throw new Violation(message);
}

/** What the rules look at of a member. */
export interface Watched {
  readonly self: Member;
  readonly raft: Raft | undefined;
  /** Synced. */
  readonly disk: Restored;
  readonly applied: number;
}

/** Remembers everything that was ever said, over all crashes. */
export class Rules {
  readonly #leaders = new Map<number, Member>();
  readonly #votes = new Map<string, Member>();
  /** Everything ever committed, by index from 1. */
  readonly #committed: Entry[] = [];

  /** The greatest index ever committed. */
  get end(): number {
    return this.#committed.length;
  }

  /** What a message says of the disk must be so, and nobody votes twice in a term, over all crashes. */
  sent({ self, disk }: Watched, message: Message): void {
    if (message.type === 'voteReply' && message.granted) this.#checkVote(self, message.to, message.term);
    if (message.type === 'vote') this.#checkVote(self, self, message.term);
    if (['vote', 'voteReply', 'append', 'appendReply', 'heartbeat', 'heartbeatReply'].includes(message.type)) {
      check(
        disk.hard.term >= message.term,
        `${self.node} speaks in term ${message.term}, which is not durable (P3, P4)`,
      );
    }
    if (message.type === 'appendReply' && message.result.type === 'proved') {
      const end = disk.entries.at(-1)?.index ?? disk.anchor.index;
      check(end >= message.result.index, `${self.node} acknowledges ${message.result.index}, durable is ${end} (P6)`);
      check(end >= message.durable, `${self.node} says ${message.durable}, durable is ${end} (P8)`);
    }
  }

  /** State machine safety, and durable on a majority when first said. Returns how many entries are new. */
  committed(node: Watched, raft: Raft, index: number, all: readonly Watched[]): number {
    const before = this.end;
    check(index > node.applied, `${node.self.node} commits ${index} again`);
    for (const entry of entriesBetween(raft, node.applied, index)) {
      const known = this.#committed[entry.index - 1];
      if (known !== undefined) {
        const same = known.term === entry.term && known.payload.join() === entry.payload.join();
        check(same, `${node.self.node} commits another entry at ${entry.index} (state machine safety)`);
        continue;
      }
      this.#committed.push(entry);
      check(this.#committed.length === entry.index, `${entry.index} is committed before what lies before it`);
    }
    const durable = all.filter(
      ({ disk }) =>
        (disk.entries.at(-1)?.index ?? disk.anchor.index) >= index &&
        this.#diskTerm(disk, index) === this.#termAt(index),
    );
    check(2 * durable.length > all.length, `${index} is committed, durable on ${durable.length} members only`);
    return this.end - before;
  }

  /** Election safety, and leader completeness against everything ever committed. True when the term is new. */
  leads(node: Watched, raft: Raft): boolean {
    const { term } = raft.hard;
    const known = this.#leaders.get(term);
    if (known !== undefined) {
      check(keyOf(known) === keyOf(node.self), `term ${term} has two leaders (election safety)`);
      return false;
    }
    this.#leaders.set(term, node.self);
    for (let index = raft.log.anchor.index + 1; index <= this.#committed.length; index++) {
      check(
        termOf(raft, index) === this.#termAt(index),
        `the leader of ${term} lacks committed ${index} (leader completeness)`,
      );
    }
    return true;
  }

  /** A snapshot that is installed is of a committed state. */
  restored({ index, term }: Position): void {
    check(index <= this.end, `a snapshot at ${index} was never committed`);
    check(term === this.#termAt(index), `a snapshot at ${index} of another term`);
  }

  #checkVote(self: Member, candidate: Member, term: number): void {
    const id = `${keyOf(self)} ${term}`;
    const earlier = this.#votes.get(id) ?? candidate;
    this.#votes.set(id, earlier);
    check(keyOf(earlier) === keyOf(candidate), `${self.node} votes twice in term ${term}`);
  }

  #termAt(index: number): number {
    return index === 0 ? 0 : (this.#committed[index - 1]?.term ?? -1);
  }

  #diskTerm(disk: Restored, index: number): number {
    if (index <= disk.anchor.index) return this.#termAt(index);
    return disk.entries[index - disk.anchor.index - 1]?.term ?? -1;
  }
}

/** Same index and term: same entries up to there. */
export function checkLogs(nodes: readonly Watched[]): void {
  const logs = nodes.flatMap(({ raft }) => (raft === undefined ? [] : [raft.log]));
  for (const [at, left] of logs.entries()) {
    for (const right of logs.slice(at + 1)) {
      let same = false;
      const top = Math.min(left.anchor.index + left.entries.length, right.anchor.index + right.entries.length);
      for (let index = top; index > Math.max(left.anchor.index, right.anchor.index); index--) {
        const one = left.entries[index - left.anchor.index - 1];
        const other = right.entries[index - right.anchor.index - 1];
        const equal = one?.term === other?.term;
        check(equal || !same, `logs differ at ${index} below an equal entry (log matching)`);
        if (equal)
          check(one?.payload.length === other?.payload.length, `logs have two entries at ${index} in one term`);
        same ||= equal;
      }
    }
  }
}

/** A disk after a write that was synced. */
export function afterWrite(disk: Restored, write: LogWrite): Restored {
  let { anchor, snapshot } = disk;
  let kept = disk.entries;
  if (write.install !== undefined) {
    snapshot = write.install;
    anchor = { index: snapshot.index, term: snapshot.term };
    kept = [];
  } else if (write.cutFrom !== undefined) {
    const { cutFrom } = write;
    kept = kept.filter(({ index }) => index < cutFrom);
  }
  const end = kept.at(-1)?.index ?? anchor.index;
  check((write.entries[0]?.index ?? end + 1) === end + 1, `a write at ${write.entries[0]?.index ?? 0} follows ${end}`);
  return { hard: write.hard, snapshot, anchor, entries: [...kept, ...write.entries] };
}
