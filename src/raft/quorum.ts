import { assert } from '../base/assert.js';
import { keyOf } from './member.js';
import type { Configuration, MemberKey } from './types.js';

/** The voters of each half that counts: one half, or two while the configuration is joint. */
export type Halves = readonly (readonly MemberKey[])[];

/** The halves of `configuration`. Learners are in none. */
export function halvesOf(configuration: Configuration): Halves {
  assert(configuration.voters.length > 0, 'a configuration must have at least one voter');
  const halves = [configuration.voters, configuration.outgoing].filter((half) => half.length > 0);
  const keys = halves.map((half) => half.map(keyOf));
  for (const half of keys) assert(new Set(half).size === half.length, `voters must be distinct: ${half.join(', ')}`);
  return keys;
}

/**
 * The one quorum function: the greatest value that a majority of *every* half has reached. Votes, commit,
 * confirmation rounds and check-quorum all ask it, so none can count over the union, count learners or count a member
 * that the configuration does not list (M3, M11, F10, R6). `valueOf` is asked for listed voters only.
 */
export function quorumValue(halves: Halves, valueOf: (voter: MemberKey) => number): number {
  assert(halves.length > 0, 'a quorum of no voters was asked for');
  let reached = Infinity;
  for (const half of halves) {
    const values = half.map(valueOf).sort((left, right) => right - left);
    const ofMajority = values[Math.floor(values.length / 2)];
    assert(ofMajority !== undefined, 'a half of a configuration has no voters');
    reached = Math.min(reached, ofMajority);
  }
  return reached;
}

/** How an election stands: `lost` when those who have not answered could no longer turn it. */
export function countVotes(halves: Halves, votes: ReadonlyMap<MemberKey, boolean>): 'won' | 'lost' | 'open' {
  if (quorumValue(halves, (voter) => (votes.get(voter) === true ? 1 : 0)) === 1) return 'won';
  return quorumValue(halves, (voter) => (votes.get(voter) === false ? 0 : 1)) === 0 ? 'lost' : 'open';
}
