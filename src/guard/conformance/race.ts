/** Two holders of one domain that race, round after round, with pauses that follow from a seed. */
import { createRandom, nextInt } from '../../base/random.js';
import type { Random } from '../../base/random.js';
import type { Outcome } from '../types.js';
import { Actor, applied, check, ITEM, leaseOf, outcomeOf, show, sleep } from './check.js';
import type { Between, GuardedStore } from './subject.js';

/** What the loser of a round tries to write. */
const LOSER_WRITES = 3;

export async function race(store: GuardedStore, rounds: number, seed: number): Promise<void> {
  const random = createRandom(seed);
  const actor = new Actor(store);
  for (let round = 0; round < rounds; round++) {
    try {
      // Each has its own stream, or their order would mix their pauses.
      await raceOnce(actor, 2 * round + 1, createRandom(nextInt(random, 0, 2 ** 32 - 1)), random);
    } catch (error) {
      const message = error instanceof Error ? error.message : String(error);
      throw new Error(`round ${round} of ${rounds}, seed ${seed}: ${message}`, { cause: error });
    }
  }
}

async function raceOnce(actor: Actor, token: number, losers: Random, winners: Random): Promise<void> {
  const [low, high] = [leaseOf(token), leaseOf(token + 1)];
  let opened = false;

  const loser = async (): Promise<void> => {
    const pause = pausing(losers);
    const attempt = async (what: string, operation: () => Promise<Outcome<unknown>>): Promise<void> => {
      await pause();
      const late = opened;
      const outcome = await operation();
      const allowed = late ? ['stale'] : ['applied', 'stale'];
      const when = late ? ', begun after its successor had opened,' : '';
      check(allowed.includes(outcome.status), `${what} under token ${low.token}${when} ended as ${show(outcome)}`);
    };
    await attempt('open', () => outcomeOf(() => actor.store.open(low)));
    for (let at = 0; at < LOSER_WRITES; at++)
      await attempt('a write', () => actor.write(low, `${token}:${at}`, ITEM, pause));
  };

  const winner = async (): Promise<void> => {
    const pause = pausing(winners);
    await pause();
    const tenure = await actor.opens(high);
    opened = true;
    // What it reads after it has opened stays true until it writes itself.
    const seen = await actor.store.read(high.domain, ITEM);
    await pause();
    await actor.holds(seen);
    for (const at of [1, 2]) {
      applied(await tenure.write(`${token + 1}:${at}`, pause), `a write of the tenure under token ${high.token}`);
      await pause();
      await actor.holds(`${token + 1}:${at}`);
    }
  };

  const [lost, won] = await Promise.allSettled([loser(), winner()]);
  for (const end of [won, lost]) if (end.status === 'rejected') throw end.reason;
  await actor.holds(`${token + 1}:2`);
}

/** Nothing, a turn of the loop, or up to two milliseconds. */
function pausing(random: Random): Between {
  return async () => {
    const choice = nextInt(random, 0, 9);
    if (choice < 5) return;
    if (choice < 9) await new Promise((resolve) => setImmediate(resolve));
    else await sleep(nextInt(random, 0, 2));
  };
}
