/** Cases of what a token is: a number of 64 bits, of one cluster, in one of its histories. */
import {
  Actor,
  applied,
  check,
  DOMAIN,
  ITEM,
  leaseOf,
  must,
  OTHER_CLUSTER,
  OTHER_DOMAIN,
  OTHER_INCARNATION,
  show,
} from './check.js';
import type { GuardedStore } from './subject.js';

export async function lengths(store: GuardedStore): Promise<void> {
  const actor = new Actor(store);
  await actor.applies(leaseOf(9), 'nine');
  await actor.applies(leaseOf(10), 'ten');
  await actor.refuses(leaseOf(9), 10n);
  await actor.applies(leaseOf(100), 'a hundred');
  await actor.refuses(leaseOf(99), 100n);
}

export async function boundary(store: GuardedStore): Promise<void> {
  const actor = new Actor(store);
  const middle = 2n ** 53n;
  const last = 2n ** 63n - 1n;
  await actor.applies(leaseOf(middle), '2^53');
  await actor.applies(leaseOf(middle + 1n), '2^53 + 1');
  await actor.refuses(leaseOf(middle), middle + 1n);
  await actor.applies(leaseOf(middle + 1n), '2^53 + 1 again');
  // In another domain, where it is no jump.
  const other = (token: bigint) => leaseOf(token, { domain: OTHER_DOMAIN });
  await actor.applies(other(last - 1n), '2^63 - 2');
  await actor.applies(other(last), '2^63 - 1');
  await actor.refuses(other(last - 1n), last);
  await actor.applies(other(last), '2^63 - 1 again');
}

export async function poisonCapped(store: GuardedStore): Promise<void> {
  const actor = new Actor(store);
  const cap = must(store, 'maxJump');
  await actor.applies(leaseOf(5), 'mine');
  await actor.rejects(leaseOf(5n + cap + 1n), 'jump');
  await actor.applies(leaseOf(5), 'still mine');
  await actor.applies(leaseOf(5n + cap), 'as far as it goes');
  await actor.refuses(leaseOf(5n + cap - 1n), 5n + cap);
}

export async function poisonReset(store: GuardedStore): Promise<void> {
  const actor = new Actor(store);
  const reset = must(store, 'reset');
  const poison = 5n + (store.maxJump ?? 2n ** 62n);
  await actor.applies(leaseOf(5), 'mine');
  await actor.applies(leaseOf(poison), 'poison');
  await actor.refuses(leaseOf(7), poison);
  await reset(leaseOf(7));
  await actor.refuses(leaseOf(6), 7n);
  await actor.applies(leaseOf(7), 'mine again');
  await actor.applies(leaseOf(8), 'and the next');
  await actor.refuses(leaseOf(7), 8n);
}

export async function equalIncarnation(store: GuardedStore): Promise<void> {
  const actor = new Actor(store);
  await actor.applies(leaseOf(5), 'a');
  await actor.rejects(leaseOf(5, { incarnation: OTHER_INCARNATION }), 'incarnation');
  await actor.applies(leaseOf(5), 'b');
  await actor.holds('b');
}

export async function greaterIncarnation(store: GuardedStore): Promise<void> {
  const actor = new Actor(store);
  const restored = (token: number) => leaseOf(token, { incarnation: OTHER_INCARNATION });
  await actor.applies(leaseOf(5), 'a');
  const earlier = await actor.applies(restored(6), 'b');
  const { incarnation } = leaseOf(5);
  check(
    earlier === incarnation,
    `the first write after a restore reported ${show(earlier)} as the incarnation before; it was ${show(incarnation)}`,
  );
  const again = await actor.applies(restored(6), 'c');
  check(again === undefined, `the second write after a restore reported an earlier incarnation, ${show(again)}`);
  await actor.refuses(leaseOf(5), 6n);
  await actor.rejects(leaseOf(6), 'incarnation');
  await actor.holds('c');
}

export async function anotherIssuer(store: GuardedStore): Promise<void> {
  const actor = new Actor(store);
  const foreign = (token: number) => leaseOf(token, { cluster: OTHER_CLUSTER, incarnation: OTHER_INCARNATION });
  await actor.applies(leaseOf(5), 'a');
  for (const token of [9, 5, 1]) await actor.rejects(foreign(token), 'issuer');
  await actor.applies(leaseOf(5), 'b');
  await actor.holds('b');
}

export async function issuerAllowed(store: GuardedStore): Promise<void> {
  const actor = new Actor(store);
  const moved = (token: number) => leaseOf(token, { cluster: OTHER_CLUSTER, incarnation: OTHER_INCARNATION });
  await actor.applies(leaseOf(5), 'a');
  await must(store, 'allowIssuer')(DOMAIN, OTHER_CLUSTER);
  // The fence stays where it was.
  await actor.refuses(moved(4), 5n);
  await actor.applies(moved(6), 'b');
  await actor.rejects(leaseOf(7), 'issuer');
  await actor.holds('b');
}

export async function withoutLease(store: GuardedStore): Promise<void> {
  const actor = new Actor(store);
  const attempt = async (when: string): Promise<void> => {
    let passed = true;
    try {
      await must(store, 'writeWithoutLease')(DOMAIN, ITEM, 'unguarded');
    } catch {
      passed = false;
    }
    check(!passed, `a write without a lease, ${when}, was carried out`);
  };
  must(store, 'writeWithoutLease');
  await attempt('before anybody had one');
  await actor.holds(undefined);
  // Over the connections of guarded writes, also of such that were refused.
  await actor.applies(leaseOf(6), 'mine');
  await attempt('after a guarded one');
  await actor.refuses(leaseOf(5), 6n);
  await attempt('after a stale one');
  const tenure = await actor.opens(leaseOf(6));
  await attempt('within a tenure');
  applied(await tenure.write('mine again'), 'a write of the tenure under token 6');
  await actor.holds('mine again');
}
