import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { AssertionFailed } from '../../src/base/assert.js';
import { cutEntries, entriesWithin, isUpToDate, payloadBytes } from '../../src/raft/log.js';
import type { Entry, Position } from '../../src/raft/types.js';
import { entriesBetween } from '../../src/raft/raft.js';
import { A, B, C, configurationOf, Core, entries, entry, fresh, only } from './kit.js';

const VOTERS = configurationOf([A, B, C]);
const position = fc.record({ term: fc.nat(4), index: fc.nat(4) });

/** A log of `terms`, as a list of terms with the anchor's in front. */
type Terms = readonly number[];

/** Terms that rise, from a list of steps. */
const terms = fc
  .array(fc.nat(1), { minLength: 1, maxLength: 10 })
  .map((steps) => steps.reduce<number[]>((list, by) => [...list, Math.max(1, (list.at(-1) ?? 1) + by)], []));

function follower(held: Terms, term: number, commit = 0): Core {
  const core = new Core(B, fresh(VOTERS, { hard: { term, vote: undefined }, entries: entries(1, ...held) }));
  if (commit > 0) core.raft.commit = commit;
  return core;
}

function append(term: number, prev: Position, list: readonly Entry[], commit = 0) {
  return { type: 'append', from: A, to: B, term, prev, entries: list, commit, request: 1 } as const;
}

function termsOf(core: Core): number[] {
  return core.raft.log.entries.map(({ term }) => term);
}

describe('log', () => {
  it('is up to date by term first, then by index, over all pairs (R5)', () => {
    fc.assert(
      fc.property(position, position, (other, own) => {
        const rank = ({ term, index }: Position): number => term * 1_000 + index;
        expect(isUpToDate(other, own)).toBe(rank(other) >= rank(own));
      }),
    );
  });

  it('takes appends as a naive model does: cut at the first conflict only, prove no more than the message', () => {
    const cases = fc.record({ held: terms, leads: terms, from: fc.nat(10), count: fc.nat(10), commit: fc.nat(12) });
    fc.assert(
      fc.property(cases, ({ held, leads, from, count, commit }) => {
        const prevIndex = Math.min(from, leads.length);
        const prev = { index: prevIndex, term: leads[prevIndex - 1] ?? 0 };
        const list = entries(prevIndex + 1, ...leads.slice(prevIndex, prevIndex + count));
        const core = follower(held, 20);
        core.receive(append(20, prev, list, commit));
        const [reply] = only(
          [...core.flush(), ...core.effects.flatMap((e) => (e.type === 'send' ? [e.message] : []))],
          'appendReply',
        );

        if (prevIndex > held.length || (prevIndex > 0 && held[prevIndex - 1] !== prev.term)) {
          expect(termsOf(core)).toEqual(held);
          expect(reply?.result.type).toBe('conflict');
          expect(core.raft.commit).toBe(0);
          return;
        }
        const model = [...held];
        for (const { index, term } of list) {
          if (model[index - 1] !== term) model.splice(index - 1);
          model[index - 1] = term;
        }
        expect(termsOf(core)).toEqual(model);
        expect(core.raft.commit).toBe(Math.min(commit, prevIndex + list.length));
        expect(reply?.result).toEqual({ type: 'proved', index: prevIndex + list.length });
        expect(reply?.durable).toBe(model.length);
      }),
      { numRuns: 400 },
    );
  });

  it('hints so that the leader finds the place where the logs agree, and never below the commit index', () => {
    const core = follower([1, 1, 1, 2, 2, 2], 9, 2);
    const [reply] = only(core.receive(append(9, { index: 6, term: 5 }, [])), 'appendReply');
    expect(reply?.result).toEqual({ type: 'conflict', hint: { index: 6, term: 2 } });
    const [older] = only(core.receive(append(9, { index: 5, term: 1 }, [])), 'appendReply');
    expect(older?.result).toEqual({ type: 'conflict', hint: { index: 3, term: 1 } });
    const other = follower([3, 3, 3], 9, 2);
    const [least] = only(other.receive(append(9, { index: 3, term: 1 }, [])), 'appendReply');
    expect(least?.result).toEqual({ type: 'conflict', hint: { index: 2, term: 3 } });
  });

  it('keeps what lies behind a late duplicate, and proves only what that one holds (R1)', () => {
    const core = follower([1, 1, 1], 1);
    const [reply] = only(core.receive(append(1, { index: 0, term: 0 }, entries(1, 1))), 'appendReply');
    expect(termsOf(core)).toEqual([1, 1, 1]);
    expect(reply?.result).toEqual({ type: 'proved', index: 1 });
  });

  it('commits only what the message proved (R2)', () => {
    const core = follower([1, 1, 1], 2);
    core.receive(append(2, { index: 2, term: 1 }, [], 3));
    expect(core.raft.commit).toBe(2);
  });

  it('refuses entries that are not consecutive, of falling terms or of a later term (R9)', () => {
    const lists = [[entry(1, 1), entry(3, 1)], [entry(2, 1)], [entry(1, 2), entry(2, 1)], [entry(1, 4)]];
    for (const list of lists) {
      const core = follower([], 3);
      core.receive(append(3, { index: 0, term: 0 }, list));
      expect(core.raft.log.entries).toEqual([]);
      expect(core.write).toBeUndefined();
    }
  });

  it('stops rather than cut a committed entry', () => {
    const core = follower([1, 1, 1], 2, 2);
    expect(() => core.receive(append(2, { index: 1, term: 1 }, [entry(2, 2)]))).toThrow(AssertionFailed);
    expect(() => {
      cutEntries(core.raft.log, 2, 2);
    }).toThrow(/at or below the commit index 2/);
  });

  it('slices by bytes, one entry always fits', () => {
    const log = {
      anchor: { index: 4, term: 1 },
      entries: [entry(5, 1, 10), entry(6, 1, 200), entry(7, 1, 10), entry(8, 1, 90)],
    };
    const slice = (first: number, bytes: number): number[] =>
      entriesWithin(log, first, bytes).map(({ index }) => index);
    expect(slice(5, 100)).toEqual([5]);
    expect(slice(5, 210)).toEqual([5, 6]);
    expect(slice(6, 100)).toEqual([6]);
    expect(slice(7, 100)).toEqual([7, 8]);
    expect(slice(9, 100)).toEqual([]);
    expect(payloadBytes(log.entries)).toBe(310);
  });

  it('forgets only behind a cut, and still knows the term at its anchor', () => {
    const core = follower([1, 1, 2, 2], 2);
    core.receive(append(2, { index: 4, term: 2 }, [], 4));
    core.flush();
    core.feed({ type: 'applied', index: 4 });
    expect(() => core.feed({ type: 'compact', index: 2 })).toThrow(/past the newest cut 0/);
    core.feed({ type: 'snapshotTaken', meta: { index: 3, term: 2, configuration: VOTERS, configurationIndex: 0 } });
    core.feed({ type: 'compact', index: 3 });
    expect(core.raft.log.anchor).toEqual({ index: 3, term: 2 });
    expect(entriesBetween(core.raft, 3, 4).map(({ index }) => index)).toEqual([4]);
    expect(() => entriesBetween(core.raft, 2, 4)).toThrow(AssertionFailed);
    // The leader's previous entry lies inside what is compacted (R12).
    core.receive(append(2, { index: 1, term: 1 }, entries(2, 1, 2, 2, 2)));
    expect(core.raft.log.entries.map(({ index }) => index)).toEqual([4, 5]);
  });
});
