/**
 * What a session does with a lease that it does not use: it lets it run out, and is there at the moment at which the
 * leader ends it. What comes just then meets an Expire, or a Void, that is under way (L2, F5, F8); at any other time it
 * hardly ever does.
 */
import type { Call, LeaseRef } from '../../../src/base/api.js';
import { CLOCK_DRIFT, EXPIRY_MARGIN_MS } from '../../../src/base/limits.js';
import type { Random } from '../../../src/base/random.js';
import { between, weighted } from '../chance.js';
import { requestId } from './surroundings.js';

type Acquire = Extract<Call, { type: 'acquire' }>;

/** Calls to one node, one right after the other. */
export interface Ending {
  readonly kind: keyof typeof KINDS;
  /** Milliseconds on the session's clock from the send of the acquire that was granted. */
  readonly afterMs: number;
  readonly calls: readonly Call[];
}

const KINDS = {
  repeat: 3,
  renew: 3,
  replace: 3,
  /** Before the end, where a Checkpoint stands and the repeated acquire waits for its Void. */
  'repeat and release': 2,
};

/** Plans the end of what `acquire` was granted. */
export function planEnding(random: Random, acquire: Acquire, lease: LeaseRef): Ending {
  const kind = weighted(random, Object.entries(KINDS) as [keyof typeof KINDS, number][]);
  const { ttlMs } = acquire;
  // When the leader's clock says so, which is as wrong as the own one, and a little after: the way there, and its tick.
  const end = (ttlMs * (1 + CLOCK_DRIFT) + EXPIRY_MARGIN_MS) * between(random, 0.99, 1.01) + between(random, -10, 40);
  const release = { type: 'release', lease } as const;
  switch (kind) {
    case 'repeat':
      return { kind, afterMs: end, calls: [acquire] };
    case 'renew':
      return { kind, afterMs: end, calls: [{ type: 'renew', leases: [lease] }] };
    case 'replace':
      return { kind, afterMs: end, calls: [release, { ...acquire, requestId: requestId(random) }] };
    case 'repeat and release':
      return { kind, afterMs: between(random, 0.6, 0.95) * ttlMs, calls: [acquire, release] };
  }
}
