import type { Domain } from '../base/ids.js';
import type { FinishedRequest, Lease } from './types.js';

/**
 * About how many bytes the parts of a cut take. Names are counted in characters, which are bytes but for rare ones: the
 * estimate decides when a cut is due, nothing else.
 */
export const recordBytes = {
  summary: 32,
  batchKey: 16,
  domainKey: (domain: Domain): number => 8 + domain.length,
  lease: (lease: Lease): number => {
    let bytes = 96 + 2 * lease.domain.length + lease.requestId.length + lease.holder.length + lease.owner.length;
    for (const [key, value] of lease.metadata) bytes += 8 + key.length + value.length;
    return bytes;
  },
  finished: ({ requestId, domain, by, note, owner, asked }: FinishedRequest): number =>
    48 + requestId.length + domain.length + by.length + note.length + owner.length + (asked?.holder.length ?? 0),
} as const;
