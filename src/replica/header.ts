/** The header of an answer: where it was taken and at which revision (design 8). */
import type { Header } from '../base/api.js';
import { revisionAt } from '../base/revision.js';
import { leaderOf } from '../raft/view.js';
import type { Context } from './state.js';
import type { CallResult } from './types.js';

/** The header for an answer that leaves this node; the revision is that of the state which answered. */
export function headerOf(context: Context, result: CallResult): Header {
  return {
    cluster: context.genesis.cluster,
    incarnation: context.genesis.incarnation,
    revision: result.type === 'answer' ? result.revision : revisionAt(context.genesis.history, context.applied),
    node: context.options.self.node,
    leader: leaderOf(context.raft)?.node,
  };
}
