/**
 * An operator who sets the replicated limits now and then, at any node: mostly so low that they bite, often below what is
 * held and waits, and up again. Whoever is not told what became of a change repeats it at once or never.
 */
import type { ChangeLimitsCall } from '../../../src/base/api.js';
import type { NodeId } from '../../../src/base/ids.js';
import { STATE_LIMITS } from '../../../src/base/limits.js';
import type { Random } from '../../../src/base/random.js';
import { nextInt } from '../../../src/base/random.js';
import type { LimitsChange } from '../../../src/base/shared-limits.js';
import type { Channel } from '../../../src/client/channel.js';
import { chance, pick, skewed, skewedInt } from '../chance.js';
import type { Claim } from '../judges/holds.js';
import { openChannel } from './channel.js';
import type { ClientPorts, SimClient } from './client-ports.js';
import { ClientProcess } from './process.js';

/** How long it waits for an answer, in milliseconds at least and at most. */
const TIMEOUT_MS = [20, 4_000] as const;

/** See the head of the file. */
export class LimitsOperator implements SimClient {
  /** Its calls end by themselves. */
  readonly idle = true;
  readonly leaked = 0;
  readonly #ports: ClientPorts;
  readonly #everyMs: number;
  readonly #random: Random;
  readonly #process: ClientProcess;
  readonly #channels = new Map<NodeId, Channel>();
  #stopped = false;

  /** Changes something every `everyMs`, on the average. */
  constructor(ports: ClientPorts, everyMs: number) {
    this.#ports = ports;
    this.#everyMs = everyMs;
    this.#random = ports.surroundings.random;
    this.#process = new ClientProcess(ports.machine, ports.surroundings.scheduler, this.#random);
  }

  start(): void {
    this.#ports.surroundings.scheduler.after(skewed(this.#random, this.#everyMs / 2, 2 * this.#everyMs), () => {
      if (this.#stopped) return;
      if (this.#process.runs) this.#send({ type: 'changeLimits', change: this.#change() });
      this.start();
    });
  }

  stop(): void {
    this.#stopped = true;
  }

  claims(): readonly Claim[] {
    return [];
  }

  halt(why: 'stopped' | 'asleep'): void {
    this.#process.halt(why);
  }

  goOn(why: 'stopped' | 'asleep'): void {
    this.#process.goOn(why);
  }

  /** At least one limit; a high one is as good as none. */
  #change(): LimitsChange {
    const random = this.#random;
    const some = (low: number, most: number, high: number): number =>
      chance(random, 400) ? high : skewedInt(random, low, most);
    const all = {
      queueLimit: chance(random, 300) ? STATE_LIMITS.queue : nextInt(random, 0, 2),
      leasesPerPrincipal: some(1, 8, STATE_LIMITS.leasesPerPrincipal),
      waitersPerPrincipal: chance(random, 400) ? STATE_LIMITS.waitersPerPrincipal : nextInt(random, 0, 4),
      prefixQuotas: ['d1', 'd', 'd2'].slice(0, nextInt(random, 0, 3)).map((prefix) => ({
        prefix,
        leases: some(1, 5, 1_000),
        waiters: nextInt(random, 0, 4),
      })),
    };
    const names = Object.keys(all) as (keyof typeof all)[];
    const kept = pick(random, names);
    return Object.fromEntries(
      names.filter((name) => name === kept || chance(random, 400)).map((name) => [name, all[name]]),
    );
  }

  #send(call: ChangeLimitsCall): void {
    const node = pick(this.#random, this.#ports.servers()).node;
    this.#channel(node).send(call, skewed(this.#random, ...TIMEOUT_MS), (reply) => {
      const known = reply.type === 'answer' || (reply.type === 'failure' && reply.failure.outcome === 'not-done');
      if (!known && !this.#stopped && chance(this.#random, 300)) this.#send(call);
    });
  }

  #channel(node: NodeId): Channel {
    const known = this.#channels.get(node);
    if (known !== undefined) return known;
    const { name, surroundings, links, attempts, servers, codecs } = this.#ports;
    const ports = { surroundings, process: this.#process, links, attempts, client: name, life: name, servers, codecs };
    const channel = openChannel(ports, node);
    this.#channels.set(node, channel);
    return channel;
  }
}
