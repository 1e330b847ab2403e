/** Contract 6: how long after its holder's last renewal a domain is free at most, however often leaders change. */
import { describe, expect, it } from 'vitest';
import { createRandom, nextInt } from '../../src/base/random.js';
import { acquireOf, granted, refOf } from './helpers.js';
import { grantOf, scene, wait } from './queue-kit.js';

const TTL_MS = 6_000;

/** At most this after the last renewal (or the grant) reached the leader, and this more for each change of leader. */
const FREE_MS = 1.03 * TTL_MS + 1_000;
const CHANGE_MS = 0.52 * TTL_MS + 1_000;

describe('a domain whose holder is gone', () => {
  it.each([1, 2, 3, 4, 5, 6])(
    'is granted to the next waiter in the time of contract 6, while leaders change again and again (seed %i)',
    async (seed) => {
      const random = createRandom(seed);
      const { cluster, leader } = await scene({ seed });
      const lease = await granted(cluster, leader, acquireOf('d', { ttlMs: TTL_MS, holder: 'gone' }));
      let lastAt = cluster.now;
      if (seed % 2 === 0) {
        await cluster.run(nextInt(random, 0, (2 * TTL_MS) / 3));
        await cluster.answered(cluster.call(leader, { type: 'renew', leases: [refOf(lease)] }));
        lastAt = cluster.now;
      }
      const nodes = [...cluster.nodes.keys()];
      const waiting = await wait(cluster, nodes.find((node) => node !== leader) ?? '', 'next', { ttlMs: 60_000 });
      const entry = waiting.call.node;
      let changes = 0;
      let leaderlessMs = 0;
      // A leader never lives long enough to see the lease through, until five have come and gone.
      while (changes < 5 && waiting.call.result === undefined) {
        const killed = await cluster.untilLeader();
        await cluster.run(nextInt(random, 500, 3_500));
        if (cluster.leader() !== killed) continue;
        if (killed === entry) {
          // Its node must live: leadership is taken from it instead.
          const others = nodes.filter((node) => node !== entry);
          cluster.cut(entry, ...others);
          const from = cluster.now;
          await cluster.until('another leader', () => ![undefined, entry].includes(cluster.leader()));
          leaderlessMs += cluster.now - from;
          cluster.heal();
        } else {
          cluster.kill(killed);
          const from = cluster.now;
          await cluster.until('another leader', () => cluster.leader() !== undefined);
          leaderlessMs += cluster.now - from;
          cluster.start(killed);
        }
        changes++;
      }
      const got = await grantOf(cluster, waiting.call, 120_000);
      expect(got.token).toBeGreaterThan(lease.token);
      const tookMs = cluster.now - lastAt;
      expect(changes).toBeGreaterThan(0);
      expect(tookMs).toBeLessThanOrEqual(FREE_MS + changes * CHANGE_MS + leaderlessMs);
      // Contract 3: not before its holder has stopped by itself.
      expect(tookMs).toBeGreaterThanOrEqual(TTL_MS);
    },
  );
});
