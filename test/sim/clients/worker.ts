/**
 * A worker: processes that run the production client, one after the other, on one machine. They acquire contended
 * domains, write to the fenced resource while they hold them, and release, forget or die.
 */
import type { NodeId } from '../../../src/base/ids.js';
import type { Random } from '../../../src/base/random.js';
import { createClient } from '../../../src/client/client.js';
import type { Client } from '../../../src/client/client.js';
import { FencepostError, LeaseLostError } from '../../../src/client/errors.js';
import type { Lease } from '../../../src/client/lease.js';
import { between, chance, pick, skewed, skewedInt, weighted } from '../chance.js';
import { safeHoldMs } from '../judges/holds.js';
import type { Claim } from '../judges/holds.js';
import { endpointOf, simChannels } from './channel.js';
import type { ClientPorts, SimClient } from './client-ports.js';
import { ClientProcess } from './process.js';
import { UPTIME_SLACK_MS, clientSurroundings } from './surroundings.js';
import type { ClientSurroundings } from './surroundings.js';
import { simWatches } from './watching.js';

/** Acts that one worker has under way at once. */
const MAX_BUSY = 3;
/** Handles of lost leases that go on being asked. */
const MAX_LOST = 8;

/** One life of the process. */
interface Life {
  readonly name: string;
  readonly process: ClientProcess;
  readonly client: Client;
  readonly around: ClientSurroundings;
  /** Handles that were handed out, with what is done under them. */
  readonly leases: Set<Lease>;
  /** Handles whose lease was lost, the newest last: they must go on saying so. */
  readonly lost: Lease[];
}

/** See the head of the file. */
export class Worker implements SimClient {
  readonly #ports: ClientPorts;
  readonly #random: Random;
  #life: Life | undefined;
  #lives = 0;
  #busy = 0;
  #stopped = false;
  #asleep = false;
  /** True time of the last wake-up. */
  #wokenAt = -Infinity;
  #stoodSince: number | undefined;
  #leaked = 0;
  readonly #closing = new Set<Life>();

  constructor(ports: ClientPorts) {
    this.#ports = ports;
    this.#random = ports.surroundings.random;
  }

  start(): void {
    this.#boot();
    this.#later();
  }

  /** No new work; what is held is released by `close`. */
  stop(): void {
    this.#stopped = true;
    const life = this.#life;
    if (life !== undefined) this.#close(life);
  }

  /** True when nothing of it is under way any more. */
  get idle(): boolean {
    return this.#closing.size === 0;
  }

  get leaked(): number {
    return this.#leaked;
  }

  claims(): readonly Claim[] {
    const life = this.#life;
    if (life?.process.runs !== true) return [];
    const { name, surroundings } = this.#ports;
    const claims: Claim[] = [];
    for (const lease of [...life.leases, ...life.lost]) {
      const { state, domain, token, incarnation } = lease;
      if (state === 'jeopardy') surroundings.coverage.count('lease in jeopardy');
      if (!lease.isHeld()) continue;
      const at = surroundings.scheduler.now;
      const slackMs = at - this.#wokenAt < 2 * lease.ttlMs ? UPTIME_SLACK_MS : 0;
      claims.push({ client: name, incarnation, domain, token: Number(token), at, slackMs });
    }
    return claims;
  }

  halt(why: 'stopped' | 'asleep'): void {
    if (why === 'asleep') this.#asleep = true;
    if (this.#life?.process.runs === true) this.#stoodSince = this.#ports.surroundings.scheduler.now;
    this.#life?.process.halt(why);
  }

  goOn(why: 'stopped' | 'asleep'): void {
    if (why === 'asleep' && this.#asleep) {
      this.#asleep = false;
      this.#wokenAt = this.#ports.surroundings.scheduler.now;
    }
    const process = this.#life?.process;
    if (process === undefined) return;
    process.goOn(why);
    if (!process.runs || this.#stoodSince === undefined) return;
    const stoodMs = this.#ports.surroundings.scheduler.now - this.#stoodSince;
    this.#stoodSince = undefined;
    for (const lease of this.#life?.leases ?? []) {
      if (stoodMs > lease.ttlMs) this.#ports.surroundings.coverage.count('client paused past its TTL');
    }
  }

  #boot(): void {
    const { surroundings, machine, name, codecs, servers, links, attempts } = this.#ports;
    const process = new ClientProcess(machine, surroundings.scheduler, this.#random);
    this.#lives++;
    const life = `${name}.${this.#lives}`;
    const ports = { surroundings, process, links, attempts, client: name, life, servers, codecs };
    const nodes: readonly NodeId[] = servers().map(({ node }) => node);
    const options = {
      endpoints: nodes.map(endpointOf),
      holder: life,
      callTimeoutMs: skewedInt(this.#random, 300, 6_000),
    };
    const around = clientSurroundings(process, this.#random);
    const watches = simWatches(ports, this.#ports.parameters.window);
    const client = createClient(options, around, simChannels(ports), watches);
    this.#life = { name: life, process, client, around, leases: new Set(), lost: [] };
  }

  /** The next act, some time from now. The loop is the world's, not the process's: a dead process is followed by another. */
  #later(): void {
    const { surroundings, parameters } = this.#ports;
    surroundings.scheduler.after(between(this.#random, ...parameters.pauseMs), () => {
      if (this.#stopped) return;
      const life = this.#life;
      if (life === undefined) {
        if (!this.#asleep && chance(this.#random, 300)) this.#boot();
      } else if (life.process.runs && this.#busy < MAX_BUSY) this.#act(life);
      this.#later();
    });
  }

  #act(life: Life): void {
    const kind = weighted(this.#random, [
      ['acquire', 60],
      ['look', 20],
      ['close', 1],
      ['die', 1],
    ] as const);
    switch (kind) {
      case 'acquire':
        this.#own(life);
        return;
      case 'look':
        this.#ports.look();
        return;
      case 'close':
        this.#ports.surroundings.coverage.count('client closed');
        this.#life = undefined;
        this.#close(life);
        return;
      case 'die':
        this.#die(life);
        return;
    }
  }

  /** Acquires and works, in one of the ways that the client offers. */
  #own(life: Life): void {
    const { parameters, domains, slotsOf } = this.#ports;
    const { client } = life;
    const domain = pick(this.#random, domains);
    const ttlMs = skewedInt(this.#random, ...parameters.ttlMs);
    const waitMs = chance(this.#random, parameters.waits) ? skewedInt(this.#random, ...parameters.waitMs) : 0;
    const cools = chance(this.#random, parameters.coolDowns);
    const coolDownMs = cools ? skewedInt(this.#random, ...parameters.coolDownMs) : 0;
    const slots = slotsOf(domain);
    const abort = new AbortController();
    if (chance(this.#random, 150)) {
      life.process.after(skewed(this.#random, 1, 500), () => {
        abort.abort();
      });
    }
    const options = { ttlMs, waitMs, coolDownMs, slots, signal: abort.signal };
    const way = weighted(this.#random, [
      ['acquire', 4],
      ['try', 2],
      ['with', 3],
    ] as const);
    this.#busy++;
    const work = async (): Promise<void> => {
      switch (way) {
        case 'with':
          await client.withLease(domain, options, (lease) => this.#work(life, lease));
          return;
        case 'acquire':
        case 'try': {
          const lease =
            way === 'acquire' ? await client.acquire(domain, options) : await client.tryAcquire(domain, options);
          if (lease === undefined) return;
          await this.#work(life, lease);
          // One that is forgotten is renewed until its client ends.
          if (chance(this.#random, 970)) {
            life.leases.delete(lease);
            await lease.release();
          }
        }
      }
    };
    this.#finish(life, work());
  }

  #finish(life: Life, work: Promise<void>): void {
    const { coverage } = this.#ports.surroundings;
    const end = (): void => {
      if (this.#life === life) this.#busy--;
    };
    work.then(end, (error: unknown) => {
      end();
      if (error instanceof FencepostError) coverage.count(`acquire failed ${error.code}`);
      else this.#ports.report({ code: 'CLIENT', text: String(error) });
    });
  }

  /** Holds the lease for a while and writes now and then. */
  async #work(life: Life, lease: Lease): Promise<void> {
    const { surroundings, parameters } = this.#ports;
    const { process } = life;
    life.leases.add(lease);
    surroundings.coverage.count('handle handed out');
    lease.signal.addEventListener('abort', () => {
      const reason: unknown = lease.signal.reason;
      const byDeadline = reason instanceof LeaseLostError && reason.ended === undefined;
      surroundings.coverage.count(byDeadline ? 'lease lost by deadline' : 'lease lost by an answer');
      life.leases.delete(lease);
      life.lost.push(lease);
      if (life.lost.length > MAX_LOST) life.lost.shift();
    });
    this.#write(lease, 'advance');
    if (chance(this.#random, 80)) this.#cutOff(lease.ttlMs);
    else if (chance(this.#random, parameters.sleeps)) this.#sleep(lease.ttlMs);
    let leftMs = skewed(this.#random, 5, 1.5 * lease.ttlMs);
    while (leftMs > 0) {
      const stepMs = Math.min(leftMs, skewed(this.#random, 5, lease.ttlMs));
      leftMs -= stepMs;
      await new Promise<void>((resolve) => {
        process.after(stepMs, resolve);
      });
      // Most look before they act; the resource is there for the others.
      if (lease.signal.aborted && chance(this.#random, 700)) break;
      if (lease.isHeld() || chance(this.#random, 300)) this.#write(lease, 'write');
    }
    life.leases.delete(lease);
    if (!chance(this.#random, 60) || process.ended) return;
    this.#die(life);
    // Nothing comes after a death.
    await new Promise(() => undefined);
  }

  /** No node hears of it for about as long as its lease lives: it must stop by its own clocks. */
  #cutOff(ttlMs: number): void {
    const { surroundings, links, servers } = this.#ports;
    surroundings.coverage.count('holder cut off');
    for (const { node } of servers()) links.cut(node);
    // Half of the time a last answer can come when its deadline has just passed, and the lease still lives.
    const ms = chance(this.#random, 500)
      ? safeHoldMs(ttlMs) + between(this.#random, -60, 0.06 * ttlMs + 100)
      : between(this.#random, 0.7, 1.6) * ttlMs;
    surroundings.scheduler.after(ms, () => {
      links.heal();
    });
  }

  /**
   * The machine sleeps for about as long as the lease lives. Half of the time its wall clock is set back by about as much
   * meanwhile, so that only the uptime shows it.
   */
  #sleep(ttlMs: number): void {
    this.#ports.surroundings.coverage.count('holder asleep');
    const ms = between(this.#random, 0.7, 1.4) * ttlMs;
    this.#ports.sleep(ms, chance(this.#random, 500) ? between(this.#random, 0.75, 1.2) * ms : 0);
  }

  #write({ domain, token, incarnation, ttlMs }: Lease, kind: 'advance' | 'write'): void {
    const { surroundings, parameters, name, writes } = this.#ports;
    const [least, most] = parameters.latencyMs;
    // Now and then it is under way for longer than the lease lives.
    const delayMs = chance(this.#random, 100)
      ? between(this.#random, 0, 2 * ttlMs)
      : between(this.#random, least, most);
    surroundings.scheduler.after(delayMs, () => {
      writes({ domain, token: Number(token), client: name, incarnation, kind });
    });
  }

  #die(life: Life): void {
    this.#ports.surroundings.coverage.count('client killed');
    life.process.end();
    this.#ports.attempts.killed(life.name);
    this.#closing.delete(life);
    if (this.#life !== life) return;
    this.#life = undefined;
    this.#busy = 0;
    this.#stoodSince = undefined;
  }

  #close(life: Life): void {
    this.#busy = 0;
    life.leases.clear();
    life.lost.length = 0;
    this.#closing.add(life);
    const end = (): void => {
      this.#closing.delete(life);
      this.#leaked += life.around.openTimers();
    };
    life.client.close().then(end, (error: unknown) => {
      end();
      this.#ports.report({ code: 'CLIENT', text: String(error) });
    });
  }
}
