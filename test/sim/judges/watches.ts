/**
 * The watches of a run, judged at the nodes after every step, each stream by a {@link WatchJudge}, and at the clients. What
 * was applied is what the reference tables say. EXTRA: told when it is over, or before the message sent last has left.
 * AHEAD: told of more than its node has applied. LEADERLESS: it goes on at a node that has known no leader for longer than
 * an election time-out. KEPT: a node has more watchers, or fewer, than there are. OBSERVED: what an observer is told over
 * all its streams is not every change of its prefix, once and in order. COMPACTED: it was told to be too late, and was not.
 */
import { revisionAt } from '../../../src/base/revision.js';
import type { ChangeView } from '../../../src/base/watch.js';
import type { Observation } from '../../../src/client/observe.js';
import { domainChange } from '../../../src/client/views.js';
import { leaderOf } from '../../../src/raft/view.js';
import type { Loaded, WatchId } from '../../../src/replica/types.js';
import type { Coverage } from '../coverage.js';
import type { Observer, Process, Report, Step } from '../observation.js';
import { changesOf } from '../reference/changes.js';
import type { LeaseModel } from '../reference/lease-model.js';
import { domainOf, WatchJudge } from './watch.js';

/** A watch is ended by the tick behind its time; a step may come late by some. */
const LATE_TICKS = 3;

/** One stream at a node. */
interface Stream {
  readonly judge: WatchJudge;
  readonly from: number;
  /** The message sent last has left. */
  ready: boolean;
}

/** One life of a process. */
interface Node {
  readonly streams: Map<WatchId, Stream>;
  /** Since when it knows no leader, by its own clock. */
  leaderlessSince: number | undefined;
  /** The last step with a tick left it with a leader. */
  led: boolean;
}

/** What was applied of one history. */
interface History {
  readonly changes: Map<number, readonly ChangeView[]>;
  /** Those that changed something, in order. */
  readonly revisions: number[];
  /** The last revision applied by anybody. */
  end: number;
}

/** See the head of the file. */
export class Watches implements Observer {
  readonly #report: Report;
  readonly #coverage: Coverage;
  readonly #histories = new Map<string, History>();
  readonly #nodes = new Map<number, Node>();
  #blind = false;

  constructor(report: Report, coverage: Coverage) {
    this.#report = (fault) => {
      if (!this.#blind) report(fault);
    };
    this.#coverage = coverage;
  }

  /** The reference tables have applied an entry. */
  applied(incarnation: string, state: LeaseModel): void {
    const history = this.#history(incarnation);
    const changes = changesOf(state);
    if (changes.length > 0) {
      history.changes.set(state.revision, changes);
      history.revisions.push(state.revision);
    }
    history.end = Math.max(history.end, state.revision);
  }

  /** The reference tables are not kept any more: there is nothing to judge by. */
  referenceEnded(): void {
    this.#blind = true;
  }

  started({ run, genesis }: Process, { snapshot }: Loaded): void {
    this.#nodes.set(run, { streams: new Map(), leaderlessSince: undefined, led: false });
    const history = this.#history(genesis.incarnation);
    history.end = Math.max(history.end, revisionAt(genesis.history, snapshot.index));
  }

  ended({ run }: Process): void {
    this.#nodes.delete(run);
  }

  stepped(step: Step): void {
    const node = this.#nodes.get(step.process.run);
    if (node === undefined) return;
    const { streams } = node;
    for (const event of step.events) {
      if (event.type === 'watch') this.#opened(step, streams, event);
      else if (event.type === 'watchClosed') streams.delete(event.id);
      else if (event.type === 'watchReady') {
        const stream = streams.get(event.id);
        if (stream !== undefined) stream.ready = true;
      }
    }
    for (const effect of step.effects) {
      if (effect.type === 'watchFailed') {
        if (streams.delete(effect.id)) this.#coverage.count(`watch ended ${effect.failure.reason}`);
      } else if (effect.type === 'watchNews') this.#told(step, streams, effect);
    }
    const kept = step.context.watching.watchers.size;
    if (kept !== streams.size) {
      const text = `${step.process.member.node} has ${kept} watchers, and is to have ${streams.size}`;
      this.#report({ code: 'WATCH_KEPT', text });
    }
    this.#look(step, node);
  }

  /** Everything below `prefix` behind `known` was told in `observation`; to be asked with the history that it is of. */
  observed(
    name: string,
    incarnation: string,
    prefix: string,
    known: number | undefined,
    observation: Observation,
  ): void {
    const { revision, changes } = observation;
    const { changes: all } = this.#history(incarnation);
    const first = known ?? Number(changes[0]?.revision ?? revision + 1n) - 1;
    const expected: string[] = [];
    for (let of = first + 1; of <= revision; of++) {
      for (const change of all.get(of) ?? [])
        if (domainOf(change).startsWith(prefix)) expected.push(show(domainChange(change)));
    }
    const told = changes.map(show);
    const wrong = expected.findIndex((each, at) => each !== told[at]);
    if (wrong < 0 && told.length === expected.length) return;
    const at = wrong < 0 ? expected.length : wrong;
    const text = `${name} was told ${told[at] ?? 'nothing'} instead of ${expected[at] ?? 'nothing'}`;
    this.#report({ code: 'WATCH_OBSERVED', text });
  }

  /** `observed` was told to be too late, and to go on at `oldest`. */
  compacted(name: string, known: number | undefined, oldest: number): void {
    if (known === undefined || known + 1 < oldest) return;
    this.#report({ code: 'WATCH_COMPACTED', text: `${name} knows ${known} and is to begin at ${oldest}` });
  }

  /** Whether nothing below `prefix` was applied behind `known`. */
  isAll(incarnation: string, prefix: string, known: number): boolean {
    if (this.#blind) return true;
    const { changes, revisions } = this.#history(incarnation);
    for (let at = revisions.length - 1; (revisions[at] ?? 0) > known; at--) {
      const list = changes.get(revisions[at] ?? 0);
      if (list?.some((change) => domainOf(change).startsWith(prefix)) === true) return false;
    }
    return true;
  }

  #opened(step: Step, streams: Map<WatchId, Stream>, event: Extract<Step['events'][number], { type: 'watch' }>): void {
    const { process, at } = step;
    const { prefix, startRevision: from } = event.call;
    const history = this.#history(process.genesis.incarnation);
    this.#coverage.count(from === 0 ? 'watch from now on' : 'watch resumed');
    const name = `${event.id} at ${process.member.node} from ${from} of ${JSON.stringify(prefix)}`;
    const judge = new WatchJudge(
      { name, prefix, from, at },
      (revision) => (revision <= history.end ? (history.changes.get(revision) ?? []) : undefined),
      this.#report,
    );
    streams.set(event.id, { judge, from, ready: true });
  }

  #told(
    step: Step,
    streams: Map<WatchId, Stream>,
    effect: Extract<Step['effects'][number], { type: 'watchNews' }>,
  ): void {
    const stream = streams.get(effect.id);
    if (stream === undefined) {
      this.#report({ code: 'WATCH_EXTRA', text: `watch ${effect.id} is over and told of ${effect.news.type}` });
      return;
    }
    const { header, news } = effect;
    if (!stream.ready) this.#report({ code: 'WATCH_EXTRA', text: `watch ${effect.id} is told more than it takes` });
    stream.ready = false;
    const said = news.type === 'events' && (news.events.at(-1)?.revision ?? 0) > header.revision ? 'part' : news.type;
    this.#coverage.count(`watch told ${said}`);
    if (header.revision > revisionAt(step.process.genesis.history, step.context.applied))
      this.#report({ code: 'WATCH_AHEAD', text: `watch ${effect.id} is told ${header.revision} before it is applied` });
    stream.judge.told(step.at, header.revision, news);
    if (news.type === 'compacted') streams.delete(effect.id);
  }

  #look({ process, at, time, events, context }: Step, node: Node): void {
    const leader = leaderOf(context.raft) !== undefined;
    const ticked = events.some(({ type }) => type === 'tick');
    if (leader) node.leaderlessSince = undefined;
    else if (ticked) node.leaderlessSince ??= time.nowMs;
    if (!ticked) return;
    const { electionMaxMs, tickMs } = context.options;
    const leaderlessMs = node.leaderlessSince === undefined ? 0 : time.nowMs - node.leaderlessSince;
    if (leaderlessMs > electionMaxMs + LATE_TICKS * tickMs && node.streams.size > 0) {
      const text = `${process.member.node} has known no leader for ${leaderlessMs.toFixed(0)} ms, and is watched at`;
      this.#report({ code: 'WATCH_LEADERLESS', text });
    }
    const applied = revisionAt(process.genesis.history, context.applied);
    for (const { judge, from, ready } of node.streams.values()) {
      if (leader && node.led && ready && from <= applied) judge.waits(at);
    }
    node.led = leader;
  }

  #history(incarnation: string): History {
    let history = this.#histories.get(incarnation);
    if (history === undefined)
      this.#histories.set(incarnation, (history = { changes: new Map(), revisions: [], end: 0 }));
    return history;
  }
}

function show(change: unknown): string {
  return JSON.stringify(change, (_, value: unknown) => (typeof value === 'bigint' ? value.toString() : value));
}
