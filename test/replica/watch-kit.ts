/** What the watchers of a memory cluster should have seen, from its log. */
import { revisionAt } from '../../src/base/revision.js';
import type { Revision } from '../../src/base/revision.js';
import { apply } from '../../src/lease/apply.js';
import { createState } from '../../src/lease/load.js';
import { queueOf } from '../../src/lease/lookup.js';
import { summaryOf } from '../../src/lease/state.js';
import { entriesBetween } from '../../src/raft/raft.js';
import { commandCodec } from '../../src/wire/command.js';
import type { MemoryCluster } from '../support/memory-cluster.js';

/** One line for each change that the applied log of `node` made below `prefix`, from `from` on. The log must be whole. */
export function historyOf(cluster: MemoryCluster, node: string, prefix = '', from = 0): string[] {
  const { genesis } = cluster;
  const { context } = cluster.replica(node);
  const state = createState(
    { ...summaryOf(context.lease), forgotten: 0 as Revision, holding: genesis.holdMs > 0 },
    genesis.history,
    revisionAt(genesis.history, 0),
    [],
  );
  const lines: string[] = [];
  for (const entry of entriesBetween(context.raft, 0, context.applied)) {
    const revision = revisionAt(genesis.history, entry.index);
    const command = entry.kind === 'command' ? commandCodec.decode(entry.payload) : undefined;
    const before = new Map([...state.queues].map(([name, queue]) => [name, queue.length]));
    const { ended, granted } = apply(state, { revision, term: entry.term }, command);
    if (revision < from) continue;
    const say = (domain: string, text: string): void => {
      if (domain.startsWith(prefix)) lines.push(`${revision} ${text}`);
    };
    for (const { lease, reason } of ended) say(lease.domain, `ended ${lease.domain} ${lease.token} ${reason}`);
    for (const lease of granted) say(lease.domain, `granted ${lease.domain} to ${lease.holder}`);
    for (const name of new Set([...before.keys(), ...state.queues.keys()])) {
      const now = queueOf(state, name).length;
      if (now !== (before.get(name) ?? 0)) say(name, `queue ${name} ${now}`);
    }
  }
  return lines;
}
