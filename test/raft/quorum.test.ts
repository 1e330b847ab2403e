import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { keyOf } from '../../src/raft/member.js';
import { countVotes, halvesOf, quorumValue } from '../../src/raft/quorum.js';
import type { Member, MemberKey } from '../../src/raft/types.js';
import { configurationOf, member } from './kit.js';

const EVERYBODY = Array.from({ length: 9 }, (_, at) => member(`n${at}`));

/** By definition: some set of members is a majority of each half and all in it have reached `value`. */
function bruteForce(halves: readonly (readonly Member[])[], reached: ReadonlySet<MemberKey>): boolean {
  const all = [...new Set(halves.flat().map(keyOf))];
  for (let set = 0; set < 2 ** all.length; set++) {
    const inSet = new Set(all.filter((_, at) => (set >> at) & 1));
    const majority = halves.every((half) => 2 * half.filter((one) => inSet.has(keyOf(one))).length > half.length);
    if (majority && [...inSet].every((key) => reached.has(key))) return true;
  }
  return false;
}

const half = fc.subarray(EVERYBODY, { minLength: 1, maxLength: 9 });
const small = fc.subarray(EVERYBODY.slice(0, 7), { minLength: 0, maxLength: 5 });

describe('quorum (R6)', () => {
  it('agrees with all subsets, for every number of voters and every set that has answered', () => {
    for (let count = 1; count <= 9; count++) {
      const voters = EVERYBODY.slice(0, count);
      const halves = halvesOf(configurationOf(voters));
      for (let answered = 0; answered < 2 ** count; answered++) {
        const value = quorumValue(halves, (key) => (answered >> voters.findIndex((v) => keyOf(v) === key)) & 1);
        const bits = voters.filter((_, at) => (answered >> at) & 1).length;
        expect(value === 1).toBe(2 * bits > count);
      }
    }
  });

  it('agrees with all subsets in joint configurations, learners and strangers never counting', () => {
    fc.assert(
      fc.property(half, small, fc.array(fc.nat(3), { minLength: 9, maxLength: 9 }), (voters, outgoing, values) => {
        const valueOf = new Map(EVERYBODY.map((one, at) => [keyOf(one), values[at] ?? 0]));
        const learners = EVERYBODY.filter((one) => !voters.includes(one) && !outgoing.includes(one));
        const halves = halvesOf(configurationOf(voters, { outgoing, learners }));
        const value = quorumValue(halves, (key) => valueOf.get(key) ?? 0);
        const parts = outgoing.length === 0 ? [voters] : [voters, outgoing];
        for (const level of [1, 2, 3]) {
          const reached = new Set([...valueOf].filter(([, v]) => v >= level).map(([key]) => key));
          expect(value >= level).toBe(bruteForce(parts, reached));
        }
      }),
      { numRuns: 60 },
    );
  });

  it('never falls while the values of members rise in any order', () => {
    const updates = fc.array(fc.tuple(fc.nat(8), fc.nat(5)), { maxLength: 40 });
    fc.assert(
      fc.property(half, small, updates, (voters, outgoing, rises) => {
        const halves = halvesOf(configurationOf(voters, { outgoing }));
        const values = new Map(EVERYBODY.map((one) => [keyOf(one), 0]));
        let before = 0;
        for (const [who, by] of rises) {
          const key = keyOf(EVERYBODY[who] ?? member('n0'));
          values.set(key, (values.get(key) ?? 0) + by);
          const now = quorumValue(halves, (voter) => values.get(voter) ?? 0);
          expect(now).toBeGreaterThanOrEqual(before);
          before = now;
        }
      }),
    );
  });

  it('counts a half of its own, not the union (M3), and pairs, not nodes (F10)', () => {
    const [a, b, c, d, e] = ['A', 'B', 'C', 'D', 'E'].map((node) => member(node)) as [
      Member,
      Member,
      Member,
      Member,
      Member,
    ];
    const joint = halvesOf(configurationOf([c, d, e], { outgoing: [a, b, c] }));
    const votes = new Map([c, d, e].map((one) => [keyOf(one), true]));
    expect(countVotes(joint, votes)).toBe('open');
    const wiped = new Map([keyOf(b), keyOf(member('C', 'd4'))].map((key) => [key, true]));
    expect(countVotes(halvesOf(configurationOf([a, b, c])), wiped)).toBe('open');
  });

  it('calls a vote lost exactly when no answer that is missing could turn it', () => {
    fc.assert(
      fc.property(
        half,
        small,
        fc.array(fc.option(fc.boolean()), { minLength: 9, maxLength: 9 }),
        (voters, outgoing, answers) => {
          const halves = halvesOf(configurationOf(voters, { outgoing }));
          const votes = new Map(
            EVERYBODY.flatMap((one, at) =>
              typeof answers[at] === 'boolean' ? [[keyOf(one), answers[at]] as const] : [],
            ),
          );
          const parts = outgoing.length === 0 ? [voters] : [voters, outgoing];
          const yes = new Set([...votes].filter(([, granted]) => granted).map(([key]) => key));
          const notNo = new Set(EVERYBODY.map(keyOf).filter((key) => votes.get(key) !== false));
          const expected = bruteForce(parts, yes) ? 'won' : bruteForce(parts, notNo) ? 'open' : 'lost';
          expect(countVotes(halves, votes)).toBe(expected);
        },
      ),
      { numRuns: 60 },
    );
  });
});
