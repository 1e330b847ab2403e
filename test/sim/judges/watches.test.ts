import { describe, expect, it } from 'vitest';
import type { Domain } from '../../../src/base/ids.js';
import type { Revision } from '../../../src/base/revision.js';
import type { ChangeView, WatchNews } from '../../../src/base/watch.js';
import { domainChange } from '../../../src/client/views.js';
import type { Loaded } from '../../../src/replica/types.js';
import { Coverage } from '../coverage.js';
import type { Process, Step } from '../observation.js';
import type { LeaseModel } from '../reference/lease-model.js';
import { HISTORY } from './told.js';
import { Watches } from './watches.js';

const PROCESS = {
  run: 1,
  member: { node: 'n1' },
  genesis: { incarnation: HISTORY, history: { base: 0, start: 0 } },
} as unknown as Process;
const TICK_MS = 10;
const ELECTION_MS = 1_000;
/** Whose queue each revision changed; 4 changed none, and 6 both. */
const CHANGED = [['a1'], ['b1'], ['a1'], [], ['b1'], ['a1', 'b1'], ['a1'], ['b1']] as const;

function change(revision: number, domain: string): ChangeView {
  return { revision: revision as Revision, type: 'queueChanged', domain: domain as Domain, queueLength: revision };
}

/** The changes of these revisions below a prefix. */
function changes(from: number, to: number, prefix = ''): ChangeView[] {
  return CHANGED.flatMap((domains, at) =>
    at + 1 < from || at + 1 > to
      ? []
      : domains.filter((domain) => domain.startsWith(prefix)).map((domain) => change(at + 1, domain)),
  );
}

const told = (id: number, revision: number, ...events: readonly ChangeView[]): unknown => {
  const news: WatchNews = events.length === 0 ? { type: 'progress' } : { type: 'events', events };
  return { type: 'watchNews', id, header: { revision }, news };
};
const compacted = (id: number, revision: number, oldest: number): unknown => ({
  type: 'watchNews',
  id,
  header: { revision },
  news: { type: 'compacted', oldest },
});
const watch = (id: number, startRevision: number, prefix = ''): unknown => ({
  type: 'watch',
  id,
  call: { prefix, startRevision },
});
const closed = (id: number): unknown => ({ type: 'watchClosed', id });
const ready = (id: number): unknown => ({ type: 'watchReady', id });
const failed = (id: number): unknown => ({ type: 'watchFailed', id, failure: { reason: 'NO_LEADER' } });
const TICK = { type: 'tick' };

/** A process of which a test says what it is handed, what it sends and what it keeps. */
class Node {
  readonly faults: string[] = [];
  readonly judge = new Watches(({ code }) => {
    this.faults.push(code);
  }, new Coverage());
  /** The watchers that it has. */
  has = 0;
  leader: string | undefined = 'n1';
  applied: number = CHANGED.length;

  constructor() {
    this.judge.started(PROCESS, { snapshot: { index: 0 } } as unknown as Loaded);
    for (const [at, domains] of CHANGED.entries()) {
      const revision = at + 1;
      const left = domains.map((domain) => ({ domain }));
      const queueOf = (): unknown[] => Array.from({ length: revision });
      const state = { revision, left, queueOf, granted: [], over: [], waiting: [] };
      this.judge.applied(HISTORY, state as unknown as LeaseModel);
    }
  }

  step(at: number, events: readonly unknown[], effects: readonly unknown[] = []): void {
    const context = {
      applied: this.applied,
      raft: { leader: this.leader },
      options: { electionMaxMs: ELECTION_MS, tickMs: TICK_MS },
      watching: { watchers: { size: this.has } },
    };
    const step = { process: PROCESS, at, time: { nowMs: at, unixMs: at }, events, effects, context };
    this.judge.stepped(step as unknown as Step);
  }
}

/** One watches from `from` on. */
function watched(from: number, prefix = ''): Node {
  const node = new Node();
  node.has = 1;
  node.step(0, [watch(1, from, prefix)]);
  return node;
}

describe('what a node does for its watchers', () => {
  it('is right when each is told everything in turn, some in parts, until it ends', () => {
    const node = watched(1);
    node.step(1, [], [told(1, 3, ...changes(1, 3))]);
    node.step(2, [ready(1)], [told(1, 5, ...changes(4, 5), change(6, 'a1'))]);
    node.has = 2;
    node.step(3, [watch(2, 5, 'b')], [told(2, 8, ...changes(5, 8, 'b'))]);
    node.step(4, [ready(1)], [told(1, 8, change(6, 'b1'), ...changes(7, 8))]);
    node.step(5, [TICK, ready(1), ready(2)], [told(1, 8), told(2, 8)]);
    node.has = 1;
    node.step(6, [closed(1)]);
    node.has = 0;
    node.step(7, [], [failed(2)]);
    node.step(8, [closed(2)]);
    node.has = 0;
    node.step(9, [watch(3, 1)], [compacted(3, 8, 5)]);
    expect(node.faults).toEqual([]);
  });

  it('is right when one is refused, or closes in the step in which it opens', () => {
    const node = new Node();
    node.step(1, [watch(1, 0)], [failed(1)]);
    node.step(2, [watch(2, 0), closed(2)]);
    node.step(3, [closed(1)]);
    expect(node.faults).toEqual([]);
  });

  it.each<[string, (node: Node) => void]>([
    [
      'WATCH_EXTRA',
      (node) => {
        node.has = 0;
        node.step(1, [closed(1)]);
        node.step(2, [], [told(1, 8, ...changes(1, 8))]);
      },
    ],
    [
      'WATCH_EXTRA',
      (node) => {
        node.has = 0;
        node.step(1, [], [failed(1)]);
        node.step(2, [], [told(1, 8, ...changes(1, 8))]);
      },
    ],
    [
      'WATCH_EXTRA',
      (node) => {
        node.step(1, [], [told(1, 3, ...changes(1, 3))]);
        node.has = 0;
        node.step(2, [ready(1)], [compacted(1, 8, 5), told(1, 8)]);
      },
    ],
    [
      'WATCH_EXTRA',
      (node) => {
        node.step(1, [], [told(1, 3, ...changes(1, 3))]);
        node.step(2, [], [told(1, 8, ...changes(4, 8))]);
      },
    ],
    [
      'WATCH_AHEAD',
      (node) => {
        node.applied = 7;
        node.step(1, [], [told(1, 8, ...changes(1, 8))]);
      },
    ],
    [
      'WATCH_GAP',
      (node) => {
        node.step(1, [], [told(1, 8, ...changes(2, 8))]);
      },
    ],
    [
      'WATCH_COMPACTED',
      (node) => {
        node.has = 0;
        node.step(1, [], [compacted(1, 8, 1)]);
      },
    ],
    [
      'WATCH_SILENT',
      (node) => {
        node.step(1, [TICK]);
        node.step(10_010, [TICK]);
      },
    ],
    [
      'WATCH_KEPT',
      (node) => {
        node.step(1, [closed(1)]);
      },
    ],
    [
      'WATCH_KEPT',
      (node) => {
        node.step(1, [], [failed(1)]);
      },
    ],
    [
      'WATCH_KEPT',
      (node) => {
        node.has = 0;
        node.step(1, []);
      },
    ],
    [
      'WATCH_LEADERLESS',
      (node) => {
        node.leader = undefined;
        for (let at = 10; at <= 10 + ELECTION_MS + 4 * TICK_MS; at += TICK_MS) node.step(at, [TICK]);
      },
    ],
  ])('is wrong: %s', (code, wrong) => {
    const node = watched(1);
    wrong(node);
    expect(node.faults.length).toBeGreaterThan(0);
    expect(node.faults[0]).toBe(code);
  });

  it('is not wrong for silence while its reader leaves a message unread, it knows no leader, or the start is to come', () => {
    const unread = watched(1);
    unread.step(1, [TICK], [told(1, 3, ...changes(1, 3))]);
    unread.step(20_000, [TICK]);
    const leaderless = watched(1);
    leaderless.step(1, [TICK]);
    leaderless.leader = undefined;
    leaderless.step(ELECTION_MS, [TICK]);
    leaderless.leader = 'n2';
    leaderless.step(20_000, [TICK]);
    const ahead = watched(9);
    ahead.step(1, [TICK]);
    ahead.step(20_000, [TICK]);
    expect([...unread.faults, ...leaderless.faults, ...ahead.faults]).toEqual([]);
  });

  it('is not wrong without a leader for an election time-out, and counts anew when one is known', () => {
    const node = watched(1);
    for (const from of [10, 3_000]) {
      node.leader = undefined;
      for (let at = from; at <= from + ELECTION_MS; at += TICK_MS) node.step(at, [TICK]);
      node.leader = 'n2';
      node.step(from + ELECTION_MS + TICK_MS, [TICK]);
    }
    expect(node.faults).toEqual([]);
  });

  it('ends with its process', () => {
    const node = watched(1);
    node.judge.ended(PROCESS);
    node.step(1, [], [told(1, 8)]);
    expect(node.faults).toEqual([]);
  });
});

/** What an observer of `prefix` that knows everything up to `known` is told. */
function observed(known: number | undefined, revision: number, list: readonly ChangeView[], prefix = 'a'): string[] {
  const { judge, faults } = new Node();
  judge.observed('o1', HISTORY, prefix, known, { revision: BigInt(revision), changes: list.map(domainChange) });
  return faults;
}

describe('what an observer is told', () => {
  it('is every change of its prefix', () => {
    expect(observed(0, 8, changes(1, 8, 'a'))).toEqual([]);
    expect(observed(3, 8, changes(4, 8, 'a'))).toEqual([]);
    expect(observed(3, 5, [])).toEqual([]);
    expect(observed(undefined, 8, changes(3, 8, 'a'))).toEqual([]);
    expect(observed(undefined, 8, [])).toEqual([]);
    expect(observed(0, 8, changes(1, 8), '')).toEqual([]);
  });

  it.each([
    ['without the first', changes(3, 8, 'a')],
    ['without the last', changes(1, 6, 'a')],
    ['without one between', changes(1, 8, 'a').filter(({ revision }) => revision !== 3)],
    ['nothing', []],
    ['one twice', [...changes(1, 3, 'a'), ...changes(3, 8, 'a')]],
    ['two in the wrong order', [...changes(3, 3, 'a'), ...changes(1, 1, 'a'), ...changes(6, 8, 'a')]],
    ['one of another prefix', changes(1, 8)],
    ['one that never happened', [...changes(1, 8, 'a'), change(8, 'a1')]],
  ])('is wrong: %s', (_, list) => {
    expect(observed(0, 8, list)).toEqual(['WATCH_OBSERVED']);
  });

  it('is compacted when it knows too little, and never otherwise', () => {
    const { judge, faults } = new Node();
    judge.compacted('o1', 3, 5);
    judge.compacted('o1', undefined, 5);
    expect(faults).toEqual([]);
    judge.compacted('o1', 4, 5);
    expect(faults).toEqual(['WATCH_COMPACTED']);
  });

  it('is all when nothing of its prefix was applied behind it', () => {
    const { judge } = new Node();
    const all = (prefix: string, known: number): boolean => judge.isAll(HISTORY, prefix, known);
    expect([all('', 8), all('', 7), all('a', 7), all('a', 6), all('b', 7), all('none', 0)]).toEqual([
      true,
      false,
      true,
      false,
      false,
      true,
    ]);
  });
});

describe('without the reference tables', () => {
  it('nothing is judged, and nothing waited for', () => {
    const node = watched(1);
    node.judge.referenceEnded();
    node.step(1, [], [told(1, 8, ...changes(2, 8)), told(7, 8)]);
    node.judge.compacted('o1', 8, 1);
    expect(node.faults).toEqual([]);
    expect(node.judge.isAll(HISTORY, '', 0)).toBe(true);
  });
});
