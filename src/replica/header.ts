/** The header of an answer: where it was taken and at which revision (design 8). */
import type { Header } from '../base/api.js';
import { revisionAt } from '../base/revision.js';
import type { Revision } from '../base/revision.js';
import { leaderOf } from '../raft/view.js';
import type { Context } from './state.js';
import type { CallResult } from './types.js';

/** The header for an answer that leaves this node; the revision is that of the state which answered. */
export function headerOf(context: Context, result: CallResult): Header {
  return headerAt(
    context,
    result.type === 'answer' ? result.revision : revisionAt(context.genesis.history, context.applied),
  );
}

/** The header for news of what this node has applied up to `revision`. */
export function headerAt(context: Context, revision: Revision): Header {
  return {
    cluster: context.genesis.cluster,
    incarnation: context.genesis.incarnation,
    revision,
    node: context.options.self.node,
    leader: leaderOf(context.raft)?.node,
  };
}
