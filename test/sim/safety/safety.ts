/**
 * What must hold after every step of every member (codes of test/scenario): the invariants of Raft and of the disk, equal
 * states at equal positions, and facts of the log for those who judge what clients saw.
 */
import { finishedLease, leaseOf } from '../../../src/lease/lookup.js';
import { hashState } from '../../../src/lease/hash.js';
import type { State } from '../../../src/lease/state.js';
import type { Command } from '../../../src/lease/commands.js';
import { keyOf } from '../../../src/raft/member.js';
import { entriesBetween } from '../../../src/raft/raft.js';
import type { Entry, Member } from '../../../src/raft/types.js';
import type { Context } from '../../../src/replica/state.js';
import type { Loaded } from '../../../src/replica/types.js';
import { revisionAt } from '../../../src/base/revision.js';
import { commandCodec } from '../../../src/wire/command.js';
import { Invariants } from '../../scenario/invariants.js';
import type { NodeView } from '../../scenario/invariants.js';
import { viewOf } from '../../scenario/node-view.js';
import type { Observer, Process, Report, Step } from '../observation.js';
import { Shadow } from './shadow.js';

/** Facts of the log, told when the first member applies an entry. */
export interface Facts {
  /** `command` is undefined for a no-op or a configuration. `revision` is that of the entry. */
  entry(entry: Entry, command: Command | undefined, revision: number): void;
  /** A lease is over by time. */
  expired(domain: string, token: number, at: number): void;
  /** A lease outlived an Expire that named it: it had changed meanwhile. */
  outlived(): void;
}

/** What of a core is compared with what was last seen of it. */
type Look = readonly (string | number)[];

/** Messages by which a leader learns of its followers. */
const CHANGES: ReadonlySet<string> = new Set(['appendReply']);
/** Messages that say something of the sender's disk. */
const SPEAKS: ReadonlySet<string> = new Set(['vote', 'voteReply', 'appendReply']);

/** How many entries may lie between two comparisons of whole states at most. */
const HASH_EVERY = 5;

/** See the head of the file. One for each incarnation. */
export class Safety implements Observer {
  readonly #report: Report;
  readonly #facts: Facts;
  readonly #invariants = new Invariants();
  readonly #shadows = new Map<string, Shadow>();
  #disks: readonly Shadow[] = [];
  /** What was last looked at of each process. */
  readonly #looked = new Map<number, Look>();
  readonly #applied = new Map<number, number>();
  readonly #hashes = new Map<number, string>();
  /** The greatest index that any member has applied. */
  #seen = 0;

  constructor(report: Report, facts: Facts) {
    this.#report = report;
    this.#facts = facts;
  }

  started(process: Process, loaded: Loaded, context: Readonly<Context>): void {
    const { member, run } = process;
    const key = keyOf(member);
    const shadow = this.#shadows.get(key);
    if (shadow === undefined) {
      this.#shadows.set(key, new Shadow(member, loaded));
      this.#disks = [...this.#shadows.values()];
    } else {
      const fault = shadow.restarted(loaded);
      if (fault !== undefined) this.#report({ code: 'DUR', text: `${member.node} starts: ${fault}` });
    }
    this.#invariants.restored(member, run, context.applied);
    this.#applied.set(run, context.applied);
    this.#seen = Math.max(this.#seen, context.applied);
    this.#compareState(process, context.lease, context.applied);
  }

  stepped(step: Step): void {
    const { process, events, effects, context } = step;
    const { member, run } = process;
    const shadow = this.#shadows.get(keyOf(member));
    if (shadow === undefined) throw new Error(`${member.node} steps before it has started`);
    const before = this.#applied.get(run) ?? 0;
    if (effects.length === 0 && context.applied === before && events.every(({ type }) => type === 'tick')) return;
    for (const event of events) {
      if (event.type === 'written') shadow.written(event.seq);
      else if (event.type === 'cutWritten') shadow.cutWritten(event.index);
    }
    this.#observeApplied(step, before);
    let view: NodeView | undefined;
    const see = (): NodeView => (view ??= viewOf(context.raft, { member, run, applied: context.applied }));
    if (this.#hasChanged(step)) this.#invariants.observe([see()], this.#disks);
    for (const effect of effects) {
      if (effect.type === 'send' && SPEAKS.has(effect.message.type)) {
        this.#invariants.sent(effect.message, shadow, see());
      } else if (effect.type === 'persist') shadow.submitted(effect.write);
      else if (effect.type === 'cut') shadow.cutSubmitted(effect.cut.meta.index, effect.cut.keepFrom);
    }
    const fault = this.#invariants.faults[0];
    if (fault !== undefined) {
      const [code = 'NOCRASH', ...text] = fault.split(': ');
      this.#report({ code, text: text.join(': ') });
    }
  }

  ended(): void {
    // What its disk holds is looked at when it starts again.
  }

  /** A disk was lost, or brought back from a copy: what was reported of it does not bind it any more. */
  forget(process: Pick<Process, 'member'>): void {
    this.#shadows.delete(keyOf(process.member));
    this.#disks = [...this.#shadows.values()];
  }

  /** What is wrong with what a start of this member would find now; undefined when that is what it must be. */
  wouldStart(member: Member, loaded: Loaded): string | undefined {
    return this.#shadows.get(keyOf(member))?.faultOf(loaded);
  }

  /** Whether something was promised from this member's disk. */
  knows(member: Member): boolean {
    return this.#shadows.has(keyOf(member));
  }

  /** The hash of the state at this index, as far as a member was seen at it. */
  hashAt(index: number): string | undefined {
    return this.#hashes.get(index);
  }

  /** Compares a whole state with those that others had at the same index. */
  compareNow(process: Process, context: Readonly<Context>): void {
    this.#compareState(process, context.lease, context.applied);
  }

  /** Most steps carry heartbeats and leave everything as it was; what a leader knows of others changes by their replies. */
  #hasChanged({ process, events, context }: Step): boolean {
    const { raft, applied } = context;
    const { log, persistence, snapshot, commit, hard, role } = raft;
    const look: Look = [
      hard.term,
      role.type,
      commit,
      applied,
      persistence.stable,
      log.anchor.index,
      log.entries.length,
      log.entries.at(-1)?.term ?? 0,
      snapshot.index,
    ];
    const before = this.#looked.get(process.run);
    this.#looked.set(process.run, look);
    if (before?.every((value, at) => value === look[at]) !== true) return true;
    return events.some((event) => event.type === 'message' && CHANGES.has(event.message.type));
  }

  #observeApplied({ process, context, at }: Step, before: number): void {
    const { applied, raft } = context;
    if (applied === before) return;
    const { member, run, genesis } = process;
    this.#applied.set(run, applied);
    // The log begins behind what was applied: a snapshot took its place.
    const installed = before < raft.log.anchor.index;
    if (installed || applied < before) this.#invariants.restored(member, run, Math.min(applied, raft.snapshot.index));
    const from = Math.max(installed ? raft.snapshot.index : before, raft.log.anchor.index);
    for (const entry of applied > from ? entriesBetween(raft, from, applied) : []) {
      this.#invariants.applied(member, run, entry);
      if (entry.index <= this.#seen) continue;
      this.#seen = entry.index;
      const command = entry.kind === 'command' ? commandCodec.decode(entry.payload) : undefined;
      const revision = revisionAt(genesis.history, entry.index);
      this.#facts.entry(entry, command, revision);
      if (command?.type !== 'expire' || command.term !== entry.term) continue;
      for (const { domain, token } of command.leases) {
        // Another entry may have ended it before: the state says why it is over.
        if (leaseOf(context.lease, domain)?.token === token) {
          this.#facts.outlived();
          continue;
        }
        if (finishedLease(context.lease, { domain, token })?.finishedAt === revision)
          this.#facts.expired(domain, token, at);
      }
    }
    if (applied % HASH_EVERY === 0) this.#compareState(process, context.lease, applied);
  }

  #compareState({ member }: Process, state: State, index: number): void {
    const hash = hashState(state);
    const known = this.#hashes.get(index);
    if (known === undefined) this.#hashes.set(index, hash);
    else if (known !== hash) {
      this.#report({ code: 'SMS', text: `${member.node} has another state at ${index} than a member before it` });
    }
  }
}
