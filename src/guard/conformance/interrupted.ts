/** Cases in which an operation is held up, fails, or dies between its check and its commit. */
import { applied, Actor, check, forAWhile, Gate, ITEM, leaseOf, must, outcomeOf, show, stale } from './check.js';
import type { GuardedStore } from './subject.js';

/** A holder raises and writes; its predecessor's write comes while that is under way. */
export async function staleBehindRaise(store: GuardedStore): Promise<void> {
  const actor = new Actor(store);
  await actor.applies(leaseOf(5), 'before');
  const gate = new Gate();
  const raising = actor.write(leaseOf(6), 'new', ITEM, gate.pass);
  await gate.reached(raising);
  const late = settled(actor.write(leaseOf(5), 'late'));
  await forAWhile(late);
  gate.open();
  applied(await raising, 'the write under token 6, which raised');
  await late;
  // Whether the late one was before the raise or was refused: nothing of it is left.
  await actor.holds('new');
  await actor.refuses(leaseOf(5), 6n);
}

export async function raiseDuringStaleWrite(store: GuardedStore): Promise<void> {
  await new Actor(store).applies(leaseOf(5), 'before');
  await raiseDuringWrite(store, 'before');
}

export async function raiseDuringFirstWrite(store: GuardedStore): Promise<void> {
  await raiseDuringWrite(store, undefined);
}

/** A holder stands between its check and its commit; its successor begins its tenure. */
async function raiseDuringWrite(store: GuardedStore, before: string | undefined): Promise<void> {
  const actor = new Actor(store);
  const gate = new Gate();
  const old = actor.write(leaseOf(5), 'old', ITEM, gate.pass);
  await gate.reached(old);
  const opened = { first: false };
  const opening = actor.opens(leaseOf(6)).then((tenure) => {
    opened.first = !gate.isOpen;
    return tenure;
  });
  await forAWhile(opening);
  gate.open();
  const [outcome, six] = await Promise.all([settled(old), opening]);
  // Either the successor waits for the write, or the write is refused at its commit.
  if (opened.first || outcome.status !== 'applied') {
    const what = 'a write under token 5 that was checked before the fence was raised to 6, and committed after it,';
    check(outcome.status !== 'applied', `${what} ended as applied`);
    await actor.holds(before);
  } else await actor.holds('old');
  applied(await six.write('new'), 'a write of the tenure under token 6');
  await actor.refuses(leaseOf(5), 6n);
  await actor.holds('new');
}

export async function failedWork(store: GuardedStore): Promise<void> {
  const actor = new Actor(store);
  await actor.applies(leaseOf(5), 'before');
  let awaited = false;
  const failing = settled(
    actor.write(leaseOf(6), 'torn', ITEM, () => {
      awaited = true;
      return Promise.reject(new Error('the work fails, as the case wants it'));
    }),
  );
  const outcome = await failing;
  check(
    awaited,
    '`between` was never awaited. If the guard runs no work between its check and its commit, skip this case and say so',
  );
  check(outcome.status === 'thrown', `a write whose work failed ended as ${show(outcome)}; it has to throw`);
  await actor.holds('before');
  // No lock is left behind.
  await actor.applies(leaseOf(6), 'after');
  await actor.refuses(leaseOf(5), 6n);
}

export async function crash(store: GuardedStore): Promise<void> {
  const actor = new Actor(store);
  await actor.applies(leaseOf(5), 'before');
  await must(store, 'writeAndCrash')(leaseOf(6), ITEM, 'torn');
  // Both or neither. A fence that was raised for nothing does no harm.
  if ((await store.read(leaseOf(6).domain, ITEM)) === 'torn') await actor.refuses(leaseOf(5), 6n);
  else await actor.holds('before');
  await actor.applies(leaseOf(6), 'after');
  await actor.refuses(leaseOf(5), 6n);
}

export async function lostResponse(store: GuardedStore): Promise<void> {
  const actor = new Actor(store);
  await actor.applies(leaseOf(5), 'before');
  const outcome = await settled(must(store, 'writeLosingResponse')(leaseOf(6), ITEM, 'sent'));
  const honest = ['applied', 'retry', 'thrown'].includes(outcome.status);
  check(honest, `a write that was carried out, and whose answer was lost, ended as ${show(outcome)}: it met itself`);
  await actor.holds('sent');
  await actor.refuses(leaseOf(5), 6n);
  await actor.applies(leaseOf(6), 'again');
}

export async function restart(store: GuardedStore): Promise<void> {
  const actor = new Actor(store);
  await actor.applies(leaseOf(6), 'mine');
  await must(store, 'restart')();
  await actor.holds('mine');
  await actor.refuses(leaseOf(5), 6n);
  await actor.applies(leaseOf(6), 'mine again');
}

export async function passageOfTime(store: GuardedStore): Promise<void> {
  const actor = new Actor(store);
  await actor.applies(leaseOf(6), 'mine');
  await must(store, 'age')();
  // The data may be gone, if that is what the store does with them; the fence may not.
  const late = await actor.write(leaseOf(5), 'late');
  stale(late, 6n, 'a write under token 5, long after one under 6');
  applied(await outcomeOf(() => store.open(leaseOf(6))), 'open under token 6, long after its write');
}

/** The outcome, or that it threw. */
async function settled<T extends { readonly status: string }>(
  work: Promise<T>,
): Promise<T | { readonly status: 'thrown'; readonly error: unknown }> {
  try {
    return await work;
  } catch (error) {
    return { status: 'thrown', error };
  }
}
