/** What the package shows of nodes, with revisions as `bigint`. */
import type { GetStatusAnswer, MemberView, RoleView } from '../base/api.js';
import type { FencepostError } from './errors.js';

/** What one endpoint says of itself and of the cluster, or why it says nothing. */
export type NodeStatus =
  | {
      readonly type: 'answered';
      readonly endpoint: string;
      readonly cluster: string;
      /** 32 hex digits; empty while the node has not formed or joined. */
      readonly incarnation: string;
      readonly version: string;
      readonly status: NodeInfo;
    }
  | { readonly type: 'failed'; readonly endpoint: string; readonly error: FencepostError };

/** One node's view of itself and of the cluster. Revisions are 0 before it has formed or joined. */
export interface NodeInfo {
  /** Its name. */
  readonly node: string;
  /** Who leads, as far as it knows. */
  readonly leader: string | undefined;
  /** Its part in the cluster. */
  readonly role: RoleView;
  /** The Raft term. */
  readonly term: number;
  /** Every token of this history is greater. */
  readonly base: bigint;
  /** Of the newest entry of its log, durable or not. */
  readonly lastRevision: bigint;
  /** Up to here its log is on its disk. */
  readonly durableRevision: bigint;
  /** Up to here a majority has the log, as far as it knows. */
  readonly committedRevision: bigint;
  /** Up to here its state is applied. */
  readonly appliedRevision: bigint;
  /** The members, as it sees them. */
  readonly members: readonly MemberInfo[];
  /** What is wrong, one line each, with the next step. */
  readonly alarms: readonly string[];
}

/** A member as the answering node sees it. */
export interface MemberInfo {
  /** Its name. */
  readonly node: string;
  /** The id of its data directory; undefined while that is not known. */
  readonly directory: string | undefined;
  /** Where the other nodes find it. */
  readonly peerAddress: string;
  /** False for one that only learns. */
  readonly voter: boolean;
  /** From the leader only. */
  readonly reachable: boolean;
  /** Entries of the log that it lacks; from the leader only. */
  readonly lag: number;
}

/** The public form of a status. */
export function nodeInfo(answer: GetStatusAnswer): NodeInfo {
  const { node, leader, role, term, members, alarms } = answer;
  return {
    node,
    leader,
    role,
    term,
    base: BigInt(answer.base),
    lastRevision: BigInt(answer.lastRevision),
    durableRevision: BigInt(answer.durableRevision),
    committedRevision: BigInt(answer.committedRevision),
    appliedRevision: BigInt(answer.appliedRevision),
    members: members.map(memberInfo),
    alarms,
  };
}

function memberInfo({ node, directory, peerAddress, voter, reachable, lag }: MemberView): MemberInfo {
  return { node, directory, peerAddress, voter, reachable, lag };
}
