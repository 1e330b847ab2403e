/** Comparing members: always the pair (F10). */
import type { Member, MemberKey } from '../raft/types.js';

/** The pair as one string, for maps. */
export function memberKey(member: Member): MemberKey {
  return `${member.node}/${member.directory}` as MemberKey;
}

/** True when both are the same (node, directory). */
export function sameMember(left: Member, right: Member): boolean {
  return left.node === right.node && left.directory === right.directory;
}
