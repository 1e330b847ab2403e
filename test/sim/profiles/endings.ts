/** How leases end: many of them, each left alone until then, within a short time. */
import { nextInt } from '../../../src/base/random.js';
import type { Random } from '../../../src/base/random.js';
import { between, skewedInt } from '../chance.js';
import type { Parameters } from '../parameters.js';

/** `drawn` as such a run. */
export function endings(random: Random, drawn: Parameters): Parameters {
  const { clients } = drawn;
  return {
    ...drawn,
    clients: {
      ...clients,
      workers: nextInt(random, 1, 2),
      raws: nextInt(random, 3, 4),
      domains: 24,
      sleeps: skewedInt(random, 20, 300),
      toTheEnd: 700,
    },
    durationMs: between(random, 1.9, 2.5) * clients.ttlMs[0],
  };
}
