import type { Configuration, Member, MemberKey } from './types.js';

/** The one string that stands for a (node, directory) pair in maps and tallies (F10). Neither part can hold a `/`. */
export function keyOf(member: Member): MemberKey {
  return `${member.node}/${member.directory}` as MemberKey;
}

/** True when both are the same pair; the same node with another directory is another member. */
export function sameMember(left: Member | undefined, right: Member | undefined): boolean {
  return left?.node === right?.node && left?.directory === right?.directory;
}

/** A member as a configuration lists it. */
export interface Listed {
  readonly member: Member;
  readonly key: MemberKey;
  /** Counts in at least one half. */
  readonly voter: boolean;
}

/** Everybody whom `configuration` lists, each pair once, sorted by key: one order on every member. */
export function listMembers(configuration: Configuration): readonly Listed[] {
  const found = new Map<MemberKey, Listed>();
  for (const member of [...configuration.voters, ...configuration.outgoing]) {
    const key = keyOf(member);
    found.set(key, { member, key, voter: true });
  }
  for (const member of configuration.learners) {
    const key = keyOf(member);
    // A voter of the outgoing half may be a learner already: until the change ends it counts (M6).
    if (!found.has(key)) found.set(key, { member, key, voter: false });
  }
  return [...found.values()].sort((left, right) => (left.key < right.key ? -1 : 1));
}
