import type { Domain } from '../base/ids.js';
import type { CountingName, FinishedRequest, Lease, Waiter } from './types.js';

/**
 * About how many bytes the parts of a cut take. Names are counted in characters, which are bytes but for rare ones: the
 * estimate decides when a cut is due, nothing else.
 */
export const recordBytes = {
  summary: 32,
  batchKey: 16,
  waiterKey: 16,
  domainKey: (domain: Domain): number => 8 + domain.length,
  coolDown: (domain: Domain): number => 32 + domain.length,
  counting: ({ name, principal }: CountingName): number => 32 + name.length + principal.length,
  /** A lease or a waiter. */
  asked: ({ domain, requestId, holder, owner, principal, metadata }: Lease | Waiter): number => {
    let bytes = 96 + 2 * domain.length + requestId.length + holder.length + owner.length + principal.length;
    for (const [key, value] of metadata) bytes += 8 + key.length + value.length;
    return bytes;
  },
  finished: ({ requestId, domain, by, note, owner, asked }: FinishedRequest): number =>
    48 + requestId.length + domain.length + by.length + note.length + owner.length + (asked?.holder.length ?? 0),
} as const;
