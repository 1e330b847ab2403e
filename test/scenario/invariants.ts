/**
 * What must hold after every step of any run, checked from outside with code of its own: nothing here calls the core's
 * quorum, commit or comparison functions. The codes are those of the scenario files.
 *
 * Observing is incremental (a log is read from where it was last seen unchanged), so a simulator can afford it.
 */
import type { Configuration, Entry, HardState, Member, Message, Position } from '../../src/raft/types.js';
import { contentText, memberText } from './text.js';

/** One running member as seen from outside. `run` rises with every start of its process. */
export interface NodeView {
  readonly member: Member;
  readonly run: number;
  readonly role: 'follower' | 'candidate' | 'leader';
  readonly term: number;
  readonly commit: number;
  readonly applied: number;
  readonly stable: number;
  readonly last: number;
  /** The position before the first kept entry. */
  readonly anchor: Position;
  /** Index of the newest durable cut, or of the snapshot being installed. */
  readonly cut: number;
  /** The configuration that the member goes by: the newest in its log. */
  readonly configuration: Configuration;
  /** Entries of the log, both bounds at or above the anchor. */
  readonly entries: (fromExclusive: number, toInclusive: number) => readonly Entry[];
  /** Of a leader: what it believes of its followers. */
  readonly matches: readonly { readonly member: Member; readonly match: number }[];
}

/** The durable part of one data directory, running or not. */
export interface DiskView {
  readonly member: Member;
  readonly hard: HardState;
  readonly last: number;
  /** Up to here a durable state stands for the entries. */
  readonly cut: number;
  /** Term of the durable entry, undefined where there is none or only the state. */
  readonly termAt: (index: number) => number | undefined;
}

interface Seen {
  readonly run: number;
  readonly role: string;
  readonly term: number;
  readonly commit: number;
  readonly applied: number;
  readonly last: Position;
  readonly matches: ReadonlyMap<string, number>;
}

/** The last key of each node: a node seldom has a second directory, and a string that is there already is compared fast. */
const KEYS = new Map<string, { readonly directory: string; readonly key: string }>();

/** An entry, and the term of the one before it. */
interface Placed {
  readonly entry: Entry;
  readonly previous: number;
}

function key({ node, directory }: Member): string {
  const known = KEYS.get(node);
  if (known?.directory === directory) return known.key;
  const made = `${node}/${directory}`;
  KEYS.set(node, { directory, key: made });
  return made;
}

/** Two entries carry the same. */
function sameContent(left: Entry, right: Entry): boolean {
  if (left === right) return true;
  if (left.configuration !== undefined || right.configuration !== undefined) {
    return contentText(left) === contentText(right);
  }
  const { payload } = right;
  return left.payload.length === payload.length && left.payload.every((byte, at) => byte === payload[at]);
}

function termAt(view: NodeView, index: number): number | undefined {
  if (index === view.anchor.index) return view.anchor.term;
  if (index < view.anchor.index || index > view.last) return undefined;
  return view.entries(index - 1, index)[0]?.term;
}

/** See the file's comment. Faults gather in {@link Invariants.faults}; each begins with its code. */
export class Invariants {
  readonly faults: string[] = [];
  readonly #leaders = new Map<number, string>();
  /** The greatest term that anybody was seen to lead. */
  #greatest = 0;
  readonly #checked = new Map<string, number>();
  readonly #seen = new Map<string, Seen>();
  /** By term, then by index. */
  readonly #entries = new Map<number, Map<number, Placed>>();
  readonly #committed = new Map<number, { readonly entry: Entry; readonly inTerm: number }>();
  #commit = 0;
  readonly #applied = new Map<string, number>();
  readonly #votes = new Map<string, string>();
  readonly #acked: string[] = [];

  #fault(code: string, text: string): void {
    this.faults.push(`${code}: ${text}`);
  }

  /** After every step: all running members, and all disks. */
  observe(views: readonly NodeView[], disks: readonly DiskView[]): void {
    for (const view of views) this.#observeLog(view);
    for (const view of views) this.#observeProgress(view, disks);
    for (const view of views) this.#observeCommit(view, disks);
    for (const view of views) if (view.role === 'leader') this.#observeLeader(view, disks);
    for (const view of views) {
      const matches = new Map(view.matches.map((follower) => [key(follower.member), follower.match]));
      const last = { index: view.last, term: termAt(view, view.last) ?? 0 };
      const { run, role, term, commit, applied } = view;
      this.#seen.set(key(view.member), { run, role, term, commit, applied, last, matches });
    }
  }

  /** LM: index and term fix the content and the entry before, so by induction the whole prefix. */
  #observeLog(view: NodeView): void {
    const seen = this.#seen.get(key(view.member));
    const same = seen?.run === view.run ? seen : undefined;
    const kept = same !== undefined && termAt(view, same.last.index) === same.last.term;
    if (!kept && same?.role === 'leader' && view.role === 'leader' && same.term === view.term) {
      this.#fault('LM', `leader ${memberText(view.member)} cut its own log in term ${view.term}`);
    }
    const from = kept ? Math.max(same.last.index, view.anchor.index) : view.anchor.index;
    let previous = termAt(view, from) ?? 0;
    for (const entry of view.entries(from, view.last)) {
      this.#observeEntry(view, entry, previous);
      if (entry.term < previous) {
        this.#fault('LM', `${memberText(view.member)}: terms fall at ${entry.index}@${entry.term}`);
      }
      previous = entry.term;
    }
  }

  #observeEntry(view: NodeView, entry: Entry, previous: number): void {
    const ofTerm = this.#entries.get(entry.term) ?? new Map<number, Placed>();
    this.#entries.set(entry.term, ofTerm);
    const known = ofTerm.get(entry.index);
    if (known === undefined) ofTerm.set(entry.index, { entry, previous });
    else if (known.previous !== previous || !sameContent(known.entry, entry)) {
      const own = `after ${previous}: ${contentText(entry)}`;
      const other = `after ${known.previous}: ${contentText(known.entry)}`;
      this.#fault(
        'LM',
        `${memberText(view.member)} has ${entry.index}@${entry.term} "${own}", elsewhere it is "${other}"`,
      );
    }
  }

  /** MONO and ORDER. */
  #observeProgress(view: NodeView, disks: readonly DiskView[]): void {
    const { anchor, cut, applied, commit, last, stable, term } = view;
    const fault = (code: string, text: string): void => {
      this.#fault(code, `${memberText(view.member)}${text}`);
    };
    const seen = this.#seen.get(key(view.member));
    if (seen?.run === view.run) {
      if (term < seen.term) fault('MONO', `: term ${seen.term} became ${term}`);
      if (commit < seen.commit) fault('MONO', `: commit ${seen.commit} became ${commit}`);
      if (applied < seen.applied) fault('MONO', `: applied ${seen.applied} became ${applied}`);
      if (seen.term === term && seen.role === 'leader' && view.role === 'leader') {
        for (const { member, match } of view.matches) {
          const before = seen.matches.get(key(member)) ?? 0;
          if (match < before) fault('MONO', `: match of ${memberText(member)} fell from ${before} to ${match}`);
        }
      }
    }
    if (anchor.index > cut || cut > applied || applied > commit || commit > last) {
      const order = [anchor.index, cut, applied, commit, last];
      fault('ORDER', `: anchor ≤ cut ≤ applied ≤ commit ≤ last is ${order.join(' ≤ ')}`);
    }
    const disk = disks.find((candidate) => key(candidate.member) === key(view.member));
    const stableTerm = termAt(view, stable);
    if (disk !== undefined && stable > disk.cut && stable > anchor.index && disk.termAt(stable) !== stableTerm) {
      fault('DUR', ` takes ${stable} for durable, which is not on its disk`);
    }
    if (stable > last) fault('ORDER', `: stable ${stable} > last ${last}`);
  }

  /** SMS for what is reported committed, and CQ when an index is reported for the first time. */
  #observeCommit(view: NodeView, disks: readonly DiskView[]): void {
    const seen = this.#seen.get(key(view.member));
    const from = Math.max(seen?.run === view.run ? seen.commit : 0, view.anchor.index);
    if (view.commit <= from) return;
    const name = memberText(view.member);
    for (const entry of view.entries(from, view.commit)) {
      const known = this.#committed.get(entry.index);
      if (known === undefined) this.#committed.set(entry.index, { entry, inTerm: view.term });
      else if (known.entry.term !== entry.term || !sameContent(known.entry, entry)) {
        const { term } = known.entry;
        this.#fault(
          'SMS',
          `${name} commits ${entry.index}@${entry.term} "${contentText(entry)}"; committed was term ${term} "${contentText(known.entry)}"`,
        );
      }
    }
    if (view.commit <= this.#commit) return;
    this.#commit = view.commit;
    const term = termAt(view, view.commit);
    const durable = (voter: Member): boolean => {
      const disk = disks.find((candidate) => key(candidate.member) === key(voter));
      return disk !== undefined && (disk.termAt(view.commit) === term || disk.cut >= view.commit);
    };
    for (const half of [view.configuration.voters, view.configuration.outgoing]) {
      const count = half.filter(durable).length;
      if (half.length > 0 && count * 2 <= half.length) {
        this.#fault('CQ', `${name} commits ${view.commit}, durable on ${count} of ${half.length} voters`);
      }
    }
  }

  /** ES, LC, and that what a leader counts is there. */
  #observeLeader(view: NodeView, disks: readonly DiskView[]): void {
    const name = memberText(view.member);
    const leader = `${key(view.member)} run ${view.run}`;
    const known = this.#leaders.get(view.term);
    this.#greatest = Math.max(this.#greatest, view.term);
    if (known === undefined) this.#leaders.set(view.term, leader);
    else if (known !== leader) this.#fault('ES', `term ${view.term} has two leaders: ${known} and ${leader}`);
    // What this leader was seen to have need not be looked at again: it never cuts its own log (LM above).
    const slot = `${leader} t${view.term}`;
    const checked = this.#checked.get(slot) ?? 0;
    this.#checked.set(slot, this.#commit);
    for (let index = Math.max(view.anchor.index, checked) + 1; index <= this.#commit; index++) {
      const known = this.#committed.get(index);
      if (known !== undefined && known.inTerm < view.term && termAt(view, index) !== known.entry.term) {
        this.#fault(
          'LC',
          `leader ${name} of term ${view.term} lacks committed ${index}@${known.entry.term} "${contentText(known.entry)}"`,
        );
      }
    }
    if (view.term < this.#greatest) return;
    for (const { member, match } of view.matches) {
      const disk = disks.find((candidate) => key(candidate.member) === key(member));
      const term = termAt(view, match);
      // A directory that was wiped is on no disk: what it had acknowledged is gone, and no fault of the leader's.
      if (disk !== undefined && term !== undefined && match > disk.cut && disk.termAt(match) !== term) {
        this.#fault('CQ', `leader ${name} counts ${memberText(member)} up to ${match}, which is not durable there`);
      }
    }
  }

  /** Persist, then speak: called with the sender's disk and view when a message leaves. */
  sent(message: Message, disk: DiskView, view: NodeView): void {
    if (message.type === 'vote' || (message.type === 'voteReply' && message.granted)) {
      const candidate = message.type === 'vote' ? message.from : message.to;
      const slot = `${key(message.from)} t${message.term}`;
      const before = this.#votes.get(slot) ?? key(candidate);
      this.#votes.set(slot, key(candidate));
      if (before !== key(candidate))
        this.#fault('ES', `${memberText(message.from)} votes twice in term ${message.term}`);
      const { term, vote } = disk.hard;
      if (term < message.term || (term === message.term && (vote === undefined || key(vote) !== key(candidate)))) {
        this.#fault(
          'DUR',
          `${memberText(message.from)} speaks of its vote in term ${message.term} before it is durable`,
        );
      }
    }
    if (message.type === 'appendReply' && message.result.type === 'proved') {
      const { index } = message.result;
      const term = termAt(view, index);
      if (disk.hard.term < message.term || (index > disk.cut && term !== undefined && disk.termAt(index) !== term)) {
        this.#fault(
          'DUR',
          `${memberText(message.from)} acknowledges ${index} in term ${message.term} before it is durable`,
        );
      }
    }
  }

  /** SMS for what is applied, and that nothing is skipped or repeated within one run. */
  applied(member: Member, run: number, entry: Entry): void {
    const slot = `${key(member)} run ${run}`;
    const before = this.#applied.get(slot);
    if (before !== undefined && entry.index !== before + 1) {
      this.#fault('SMS', `${memberText(member)} applies ${entry.index} after ${before}`);
    }
    this.#applied.set(slot, entry.index);
    const known = this.#committed.get(entry.index);
    if (known !== undefined && (known.entry.term !== entry.term || !sameContent(known.entry, entry))) {
      this.#fault('SMS', `${memberText(member)} applies another entry at ${entry.index} than was committed`);
    }
  }

  /** A whole state was loaded: at a start, or by installing a snapshot. */
  restored(member: Member, run: number, index: number): void {
    const slot = `${key(member)} run ${run}`;
    const before = this.#applied.get(slot) ?? 0;
    if (index < before) this.#fault('MONO', `${memberText(member)}: applied ${before} restored to ${index}`);
    this.#applied.set(slot, index);
  }

  /** A client was told that its command took effect. */
  acknowledged(content: string): void {
    this.#acked.push(content);
  }

  /** What a read that begins now must see. */
  acknowledgedSoFar(): readonly string[] {
    return [...this.#acked];
  }

  /** LIN: a read's answer contains everything acknowledged before the read began. */
  readAnswered(name: string, mustSee: readonly string[], state: readonly string[]): void {
    const missing = mustSee.filter((content) => !state.includes(content));
    if (missing.length > 0) this.#fault('LIN', `read ${name} does not see ${missing.join(', ')}`);
  }
}
