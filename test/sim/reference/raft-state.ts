/** What the relation believes of one process's consensus core: rebuilt from events and effects alone. */
import type { Random } from '../../../src/base/random.js';
import type { Member, SnapshotMeta } from '../../../src/raft/types.js';
import type { Context } from '../../../src/replica/state.js';
import type { Loaded } from '../../../src/replica/types.js';
import { ModelLog } from './log.js';
import { electorate, keyOf, optionalKey } from './members.js';
import type { Electorate } from './members.js';

/** A campaign that was begun. */
export interface Campaign {
  readonly stage: 'pre' | 'real';
  /** The term that it would lead. */
  readonly term: number;
  readonly attempt: number;
  readonly last: { readonly index: number; readonly term: number };
  readonly transfer: boolean;
  readonly votes: Map<string, boolean>;
}

/** A leadership. Thrown away when it ends. */
export interface Leading {
  readonly term: number;
  readonly termStart: number;
  /** The others, listed when it began. */
  readonly others: ReadonlySet<string>;
  readonly match: Map<string, number>;
  readonly round: Map<string, number>;
  /** Tick of the last reply. */
  readonly heardAt: Map<string, number>;
  /** Number of the newest request to each. */
  readonly request: Map<string, number>;
  issued: number;
  confirmed: number;
}

/** A write that the disk has not completed. `end` falls with cuts. */
export interface Write {
  readonly seq: number;
  readonly term: number;
  readonly vote: string | undefined;
  readonly install: boolean;
  end: number;
}

/** What happened within the step under way; effects are judged by it at the end. */
export interface Facts {
  /** Granted pre-votes: asker, term, attempt. */
  readonly preVotes: Set<string>;
  readonly campaigns: Campaign[];
  /** Terms that this member led at some moment of the step. */
  readonly led: Map<number, Leading>;
  /** The greatest durable index and term at any moment of the step. */
  stable: number;
  /** Whom this member followed at some moment of the step. */
  readonly leaders: Set<string>;
  /** The commit index at which a leader that may have proposed in this step lost its role: what it appended is not known. */
  lostAt: number | undefined;
  /** The term at the beginning of the step. */
  termBefore: number;
  /** Set when a decision depended on what is not known: the outcome is taken over, within bounds. */
  unsure: boolean;
}

/** See the head of the file. */
export interface RaftModel {
  readonly self: Member;
  readonly key: string;
  readonly minTicks: number;
  readonly maxTicks: number;
  term: number;
  vote: string | undefined;
  role: 'follower' | 'pre' | 'real' | 'leader';
  leader: string | undefined;
  campaign: Campaign | undefined;
  leading: Leading | undefined;
  attempt: number;
  readonly log: ModelLog;
  electorates: Electorate[];
  commit: number;
  /** Applied up to here at the moment; follows `commit` within the step. */
  ready: boolean;
  seq: number;
  write: Write | undefined;
  handed: number;
  stable: number;
  hardWaits: boolean;
  cutFrom: number | undefined;
  install: SnapshotMeta | undefined;
  durable: { term: number; vote: string | undefined };
  /** Votes that are durable, by term. */
  readonly votes: Map<number, string>;
  /** Own campaigns, by term. */
  readonly campaigns: Map<number, Campaign>;
  /** Whom each term is led by, as heard. */
  readonly leaders: Map<number, string>;
  /** By term: request → index that it proved. */
  readonly proofs: Map<number, Map<number, number>>;
  /** The greatest round heard in each term. */
  readonly rounds: Map<number, number>;
  ticks: number;
  elapsed: number;
  timeout: number;
  /** As the core's: its numbers are drawn anew, in the order of the rules. Which they are is chance, not a rule. */
  readonly random: Random;
  heardAt: number | undefined;
  early: { dueAt: number | undefined; term: number | undefined; lastAt: number | undefined };
  expelled: boolean;
  stalled: boolean;
  lastStepAt: number | undefined;
  firstStepAt: number | undefined;
  /** Index of the newest durable cut. */
  cut: number;
  readonly pendingWrites: Map<string, number>;
  readonly peers: Map<string, { boot: string | undefined; silent: boolean }>;
  readonly facts: Facts;
}

/** Nothing has happened yet in the step that begins. One object serves all steps: they are many, and mostly empty. */
export function resetFacts(model: RaftModel): void {
  const { facts, leading, leader } = model;
  if (facts.preVotes.size > 0) facts.preVotes.clear();
  if (facts.campaigns.length > 0) facts.campaigns.length = 0;
  if (facts.led.size > 1 || facts.led.get(leading?.term ?? 0) !== leading) facts.led.clear();
  if (leading === undefined) facts.led.clear();
  else if (facts.led.size === 0) facts.led.set(leading.term, leading);
  if (facts.leaders.size > 1 || leader === undefined || !facts.leaders.has(leader)) facts.leaders.clear();
  if (leader !== undefined && facts.leaders.size === 0) facts.leaders.add(leader);
  facts.stable = model.stable;
  facts.lostAt = undefined;
  facts.termBefore = model.term;
  facts.unsure = false;
}

/** What a process is that has just read its disk: a follower that knows nothing else (P5). */
export function startRaft(self: Member, loaded: Loaded, context: Readonly<Context>): RaftModel {
  const { hard, snapshot } = loaded;
  const log = new ModelLog(loaded.anchor, loaded.entries);
  const electorates = [electorate(snapshot.configurationIndex, snapshot.configuration)];
  for (const entry of loaded.entries) {
    if (entry.configuration !== undefined && entry.index > snapshot.index) {
      electorates.push(electorate(entry.index, entry.configuration));
    }
  }
  const { electionMinTicks, electionMaxTicks } = context.raft.options;
  const vote = optionalKey(hard.vote);
  return {
    self,
    key: keyOf(self),
    minTicks: electionMinTicks,
    maxTicks: electionMaxTicks,
    term: hard.term,
    vote,
    role: 'follower',
    leader: undefined,
    campaign: undefined,
    leading: undefined,
    attempt: 0,
    log,
    electorates,
    commit: snapshot.index,
    ready: false,
    seq: 0,
    write: undefined,
    handed: log.last,
    stable: log.last,
    hardWaits: false,
    cutFrom: undefined,
    install: undefined,
    durable: { term: hard.term, vote },
    votes: new Map(vote === undefined ? [] : [[hard.term, vote]]),
    campaigns: new Map(),
    leaders: new Map(),
    proofs: new Map(),
    rounds: new Map(),
    ticks: 0,
    elapsed: 0,
    timeout: context.raft.timer.timeout,
    random: { ...context.raft.random },
    heardAt: undefined,
    early: { dueAt: undefined, term: undefined, lastAt: undefined },
    expelled: false,
    stalled: false,
    lastStepAt: undefined,
    firstStepAt: undefined,
    cut: snapshot.index,
    pendingWrites: new Map(),
    peers: new Map(),
    facts: {
      preVotes: new Set(),
      campaigns: [],
      led: new Map(),
      stable: log.last,
      leaders: new Set(),
      lostAt: undefined,
      termBefore: hard.term,
      unsure: false,
    },
  };
}

/** The configuration that counts now. */
export function inForce(model: RaftModel): Electorate {
  const last = model.electorates.at(-1);
  if (last === undefined) throw new Error('the relation knows no configuration');
  return last;
}
