/** Cases of the order of tokens, one operation after another. */
import type { GuardedStore } from './subject.js';
import { applied, Actor, check, DOMAIN, ITEM, leaseOf, must, OTHER_DOMAIN, outcomeOf, show, stale } from './check.js';

export async function firstWrite(store: GuardedStore): Promise<void> {
  const actor = new Actor(store);
  await actor.holds(undefined);
  const earlier = await actor.applies(leaseOf(5), 'first');
  check(earlier === undefined, `the first write of all reported an earlier incarnation, ${show(earlier)}`);
  await actor.holds('first');
}

export async function equalToken(store: GuardedStore): Promise<void> {
  const actor = new Actor(store);
  for (const value of ['a', 'b', 'c']) {
    await actor.applies(leaseOf(5), value);
    await actor.holds(value);
  }
}

export async function higherToken(store: GuardedStore): Promise<void> {
  const actor = new Actor(store);
  for (const token of [5, 6, 8]) {
    await actor.applies(leaseOf(token), `by ${token}`);
    await actor.holds(`by ${token}`);
  }
}

export async function staleToken(store: GuardedStore): Promise<void> {
  const actor = new Actor(store);
  await actor.applies(leaseOf(4), 'old');
  await actor.applies(leaseOf(6), 'mine');
  await actor.refuses(leaseOf(5), 6n);
  await actor.refuses(leaseOf(1), 6n);
  // What was refused has not lowered the fence.
  await actor.refuses(leaseOf(5), 6n);
  stale(await outcomeOf(() => store.open(leaseOf(5))), 6n, 'open under token 5');
}

export async function tenure(store: GuardedStore): Promise<void> {
  const actor = new Actor(store);
  await actor.applies(leaseOf(5), 'old');
  const six = await actor.opens(leaseOf(6));
  // Raised before the first write: what the new holder reads now stays true.
  await actor.refuses(leaseOf(5), 6n);
  applied(await six.write('six'), 'a write of the tenure under token 6');
  await actor.holds('six');
  const seven = await actor.opens(leaseOf(7));
  stale(await six.write('late'), 7n, 'a write of the tenure under token 6, after 7 had opened');
  await actor.holds('six');
  applied(await seven.write('seven'), 'a write of the tenure under token 7');
  await actor.holds('seven');
}

export async function deleteAndCreate(store: GuardedStore): Promise<void> {
  const actor = new Actor(store);
  const remove = (token: number) => outcomeOf(() => must(store, 'remove')(leaseOf(token), ITEM));
  await actor.applies(leaseOf(6), 'mine');
  stale(await remove(5), 6n, 'a removal under token 5');
  await actor.holds('mine');
  applied(await remove(6), 'a removal under token 6');
  await actor.holds(undefined);
  // A store that remembers the item may say stale or missing; one that holds a late value has lost its fence.
  const late = await actor.write(leaseOf(5), 'late');
  check(late.status === 'stale', `a write under token 5, after 6 had removed the item, ended as ${show(late)}`);
  await actor.holds(undefined);
  await actor.applies(leaseOf(6), 'again');
  await actor.refuses(leaseOf(5), 6n);
  await actor.holds('again');
}

export async function twoItems(store: GuardedStore): Promise<void> {
  const actor = new Actor(store);
  await actor.applies(leaseOf(5), 'a', 'one');
  await actor.applies(leaseOf(5), 'b', 'two');
  await actor.applies(leaseOf(6), 'c', 'one');
  await actor.refuses(leaseOf(5), 6n, 'two');
  await actor.refuses(leaseOf(5), 6n, 'three');
}

export async function twoDomains(store: GuardedStore): Promise<void> {
  const actor = new Actor(store);
  const other = (token: number) => leaseOf(token, { domain: OTHER_DOMAIN });
  await actor.applies(leaseOf(9), 'a');
  await actor.applies(other(5), 'b');
  await actor.refuses(leaseOf(8), 9n);
  await actor.refuses(other(4), 5n);
  await actor.holds('a');
  await actor.holds('b', ITEM, OTHER_DOMAIN);
}

export async function severalDomains(store: GuardedStore): Promise<void> {
  const actor = new Actor(store);
  const other = (token: number) => leaseOf(token, { domain: OTHER_DOMAIN });
  const move = (a: number, b: number, value: string, turned = false) => {
    const leases = [leaseOf(a), other(b)];
    return outcomeOf(() => must(store, 'writeAll')(turned ? leases.reverse() : leases, ITEM, value));
  };
  const both = async (value: string): Promise<void> => {
    await actor.holds(value);
    await actor.holds(value, ITEM, OTHER_DOMAIN);
  };
  applied(await move(5, 7, 'first'), 'a write under token 5 of one domain and 7 of the other');
  await both('first');
  stale(await move(9, 6, 'late'), 7n, 'a write under a good token of one domain and a stale one of the other');
  await both('first');
  stale(await move(4, 9, 'late'), 5n, 'a write under a stale token of one domain and a good one of the other');
  await both('first');
  // Named in both orders: a guard that locks as they come would block itself.
  const many = await Promise.all(Array.from({ length: 10 }, (_, at) => move(9, 9, `move ${at}`, at % 2 === 1)));
  for (const outcome of many) applied(outcome, 'one of several writes of both domains at once');
  const [here, there] = [await store.read(DOMAIN, ITEM), await store.read(OTHER_DOMAIN, ITEM)];
  check(here === there, `one mutation of two domains left ${show(here)} in one and ${show(there)} in the other`);
  await actor.refuses(leaseOf(8), 9n);
  await actor.refuses(other(8), 9n);
}
