import { describe, expect, it } from 'vitest';
import type { Domain } from '../../../src/base/ids.js';
import type { Revision } from '../../../src/base/revision.js';
import type { ChangeView, WatchNews } from '../../../src/base/watch.js';
import { WatchJudge } from './watch.js';

function queue(revision: number, domain: string, queueLength = 1): ChangeView {
  return { revision: revision as Revision, type: 'queueChanged', domain: domain as Domain, queueLength };
}

/** What was applied: 1 to 20; several changes at 5 and 9, none at even revisions. */
const HISTORY = new Map<number, readonly ChangeView[]>(
  Array.from({ length: 20 }, (_, at): [number, ChangeView[]] => {
    const revision = at + 1;
    if (revision % 2 === 0) return [revision, []];
    const many = revision === 5 || revision === 9 ? 4 : 1;
    return [revision, Array.from({ length: many }, (__, n) => queue(revision, n % 2 === 0 ? 'a/1' : 'b/1', n))];
  }),
);

function judging(from: number, prefix = '') {
  const faults: string[] = [];
  const judge = new WatchJudge(
    { name: 'w', prefix, from, at: 0 },
    (revision) => HISTORY.get(revision),
    ({ code }) => {
      faults.push(code);
    },
  );
  return { faults, judge };
}

function between(from: number, to: number, prefix = ''): ChangeView[] {
  return [...HISTORY]
    .filter(([revision]) => revision >= from && revision <= to)
    .flatMap(([, changes]) => changes)
    .filter((change) => change.type === 'queueChanged' && change.domain.startsWith(prefix));
}

const events = (...list: readonly ChangeView[]): WatchNews => ({ type: 'events', events: list });
const PROGRESS: WatchNews = { type: 'progress' };

describe('a watcher', () => {
  it('that is told everything in order is fine, in whatever batches, below any prefix, from now on too', () => {
    for (const prefix of ['', 'a/', 'b/', 'none']) {
      for (const size of [1, 2, 3, 7, 18]) {
        for (const from of [0, 3]) {
          const { faults, judge } = judging(from, prefix);
          if (from === 0) judge.told(1, 2, PROGRESS);
          for (let known = 2; known < 20; known += size) {
            const to = Math.min(20, known + size);
            const list = between(known + 1, to, prefix);
            judge.told(2, to, list.length === 0 ? PROGRESS : events(...list));
          }
          expect(faults, `${prefix} ${size} ${from}`).toEqual([]);
          expect(judge.known).toBe(20);
        }
      }
    }
  });

  it('may be told of a revision in parts', () => {
    const { faults, judge } = judging(5);
    const [first, second, third, fourth] = between(5, 5) as [ChangeView, ChangeView, ChangeView, ChangeView];
    judge.told(1, 4, events(first));
    judge.told(1, 4, events(second, third));
    expect(judge.known).toBe(4);
    judge.told(1, 6, events(fourth));
    expect(judge.known).toBe(6);
    judge.told(1, 9, events(...between(7, 9)));
    expect(faults).toEqual([]);
  });

  it('from now on may begin with a change', () => {
    const { faults, judge } = judging(0);
    judge.told(1, 8, events(...between(7, 8)));
    judge.told(1, 11, events(...between(9, 11)));
    expect(faults).toEqual([]);
  });

  it.each<[string, number, (told: WatchJudge['told'], list: ChangeView[]) => void]>([
    [
      'GAP',
      3,
      (told, list) => {
        told(1, 20, events(...list.slice(1)));
      },
    ],
    [
      'GAP',
      3,
      (told, list) => {
        told(1, 20, events(...list.slice(0, -1)));
      },
    ],
    [
      'GAP',
      3,
      (told, list) => {
        told(1, 20, events(...list.filter((_, at) => at !== 4)));
      },
    ],
    [
      'GAP',
      3,
      (told) => {
        told(1, 20, PROGRESS);
      },
    ],
    [
      'EXTRA',
      3,
      (told, list) => {
        told(1, 20, events(...list.slice(0, 2), ...list.slice(1)));
      },
    ],
    [
      'EXTRA',
      3,
      (told, list) => {
        told(1, 20, events(...list, queue(20, 'a/1')));
      },
    ],
    [
      'EXTRA',
      3,
      (told, list) => {
        told(1, 20, events(queue(3, 'a/1', 99), ...list.slice(1)));
      },
    ],
    [
      'EXTRA',
      3,
      (told, list) => {
        told(1, 2, events(...list.slice(0, 1)));
      },
    ],
    [
      'AHEAD',
      3,
      (told, list) => {
        told(1, 21, events(...list));
      },
    ],
    [
      'BACK',
      3,
      (told, list) => {
        told(1, 20, events(...list));
        told(2, 19, PROGRESS);
      },
    ],
    [
      'EXTRA',
      3,
      (told, list) => {
        told(1, 20, events(...list));
        told(2, 20, events(...list.slice(-1)));
      },
    ],
    [
      'COMPACTED',
      3,
      (told) => {
        told(1, 20, { type: 'compacted', oldest: 3 as Revision });
      },
    ],
    [
      'COMPACTED',
      3,
      (told) => {
        told(1, 20, { type: 'compacted', oldest: 9 as Revision });
        told(2, 20, PROGRESS);
      },
    ],
  ])('is wronged: %s from %d on', (code, from, tell) => {
    const { faults, judge } = judging(from);
    tell(
      (at, revision, news) => {
        judge.told(at, revision, news);
      },
      between(from, 20),
    );
    expect(faults[0]).toBe(`WATCH_${code}`);
  });

  it('is wronged when two changes change places, or one is told that its prefix leaves out', () => {
    const all = between(3, 20);
    for (let at = 0; at + 1 < all.length; at++) {
      const { faults, judge } = judging(3);
      const [one, two] = all.slice(at, at + 2) as [ChangeView, ChangeView];
      judge.told(1, 20, events(...all.slice(0, at), two, one, ...all.slice(at + 2)));
      expect(faults.length, String(at)).toBeGreaterThan(0);
    }
    const { faults, judge } = judging(5, 'a/');
    judge.told(1, 5, events(...between(5, 5)));
    expect(faults[0]).toMatch(/WATCH_(EXTRA|GAP)/);
  });

  it('is wronged when nothing is said for longer than ten seconds', () => {
    const { faults, judge } = judging(3);
    judge.waits(10_000);
    judge.told(10_000, 2, PROGRESS);
    judge.waits(20_000);
    expect(faults).toEqual([]);
    judge.waits(20_001);
    expect(faults).toEqual(['WATCH_SILENT']);
  });

  it('that is told of being compacted is fine when its start is older', () => {
    const { faults, judge } = judging(3);
    judge.told(1, 20, { type: 'compacted', oldest: 9 as Revision });
    judge.waits(60_000);
    expect(faults).toEqual([]);
  });
});
