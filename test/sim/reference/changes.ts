/** What a watcher must be told of an entry, from the reference tables: ends first, then grants, then queues. */
import type { LeaseRef } from '../../../src/base/api.js';
import type { Revision } from '../../../src/base/revision.js';
import type { ChangeView } from '../../../src/base/watch.js';
import type { LeaseModel } from './lease-model.js';

/** The changes of the entry that made `state`, in the order of the API. */
export function changesOf(state: LeaseModel): ChangeView[] {
  const { granted, left, over, waiting } = state;
  const revision = state.revision as Revision;
  const changes: ChangeView[] = [];
  let first = over.length;
  while (over[first - 1]?.finishedAt === revision) first--;
  for (const request of over.slice(first)) {
    const { domain, token } = request;
    // One who only waited, or never came, had no lease.
    if (token === undefined) continue;
    const lease: LeaseRef = { domain, token };
    changes.push({ revision, type: 'ended', ended: { ...state.viewOf(request), lease } });
  }
  for (const { domain, token, holder, metadata, ttlMs, grantedAtUnixMs } of granted) {
    const lease = { domain, token, holder, metadata, ttlMs, grantedAtUnixMs };
    changes.push({ revision, type: 'granted', lease });
  }
  const names = new Set(left.map(({ domain }) => domain));
  const last = waiting.at(-1);
  if (last?.queuedAt === revision) names.add(last.domain);
  for (const domain of names)
    changes.push({ revision, type: 'queueChanged', domain, queueLength: state.queueOf(domain).length });
  return changes;
}
