/**
 * A watcher: a process that observes a prefix with the production client, one observation after the other. It goes on where
 * it stopped, reads nothing for a while now and then, and begins anew when it was told that it came too late.
 */
import type { Random } from '../../../src/base/random.js';
import { createClient } from '../../../src/client/client.js';
import type { Client } from '../../../src/client/client.js';
import { CompactedError, FencepostError } from '../../../src/client/errors.js';
import type { OpenWatch } from '../../../src/client/watch-channel.js';
import { between, chance, pick, skewed } from '../chance.js';
import type { Claim } from '../judges/holds.js';
import type { Watches } from '../judges/watches.js';
import { endpointOf, simChannels } from './channel.js';
import type { ClientPorts, SimClient } from './client-ports.js';
import { ClientProcess } from './process.js';
import { clientSurroundings } from './surroundings.js';
import { simWatches } from './watching.js';

/** In 1 000 observations: after how many it stops observing, and goes on with an observation of its own. */
const BREAKS = 20;
/** How long it reads nothing, in milliseconds at least and at most. */
const NAP_MS = [5, 2_000] as const;
/** No node may serve for so long before the client says so, in milliseconds. */
const GIVE_UP_MS = 5_000;

/** See the head of the file. */
export class Watcher implements SimClient {
  /** It has no call under way. */
  readonly idle = true;
  readonly leaked = 0;
  readonly #ports: ClientPorts;
  readonly #watches: Watches;
  readonly #random: Random;
  readonly #process: ClientProcess;
  readonly #prefix: string;
  /** The history of what arrived last, and up to where all of it is known. */
  #incarnation = '';
  #known: number | undefined;
  #stopped = false;

  constructor(ports: ClientPorts, watches: Watches) {
    this.#ports = ports;
    this.#watches = watches;
    this.#random = ports.surroundings.random;
    this.#process = new ClientProcess(ports.machine, ports.surroundings.scheduler, this.#random);
    this.#prefix = pick(this.#random, ['', 'd', 'd1', ...ports.domains]);
  }

  /** Whether it was told of everything below its prefix, in the history that it observes. */
  get knowsAll(): boolean {
    return this.#known !== undefined && this.#watches.isAll(this.#incarnation, this.#prefix, this.#known);
  }

  start(): void {
    const { surroundings, name, codecs, servers, links, attempts, parameters } = this.#ports;
    const process = this.#process;
    const ports = { surroundings, process, links, attempts, client: name, life: name, servers, codecs };
    const watches = simWatches(ports, parameters.window);
    const open: OpenWatch = (endpoint, call, listener) =>
      watches(endpoint, call, {
        message: (message) => {
          // All that one stream tells is of one history; the next one is opened when this is read.
          this.#incarnation = message.header.incarnation;
          listener.message(message);
        },
        end: (end) => {
          listener.end(end);
        },
      });
    const endpoints = servers().map(({ node }) => endpointOf(node));
    const around = clientSurroundings(process, this.#random);
    const client = createClient(
      { endpoints, holder: name, callTimeoutMs: GIVE_UP_MS },
      around,
      simChannels(ports),
      open,
    );
    void this.#observeOn(client);
  }

  /** Reads without a pause from now on: what is to come is the end. */
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

  async #observeOn(client: Client): Promise<void> {
    for (;;) {
      try {
        await this.#observe(client);
      } catch (error) {
        if (!(error instanceof FencepostError)) throw error;
        this.#ports.surroundings.coverage.count(`observer told ${error.code}`);
        if (error instanceof CompactedError) this.#beginAnew(error);
      }
      await this.#pause(between(this.#random, 1, 50));
    }
  }

  async #observe(client: Client): Promise<void> {
    const { name, parameters, surroundings } = this.#ports;
    const from = this.#known === undefined ? {} : { from: BigInt(this.#known + 1) };
    for await (const observation of client.observe(this.#prefix, from)) {
      this.#watches.observed(name, this.#incarnation, this.#prefix, this.#known, observation);
      this.#known = Number(observation.revision);
      if (this.#stopped) continue;
      if (chance(this.#random, parameters.naps)) {
        surroundings.coverage.count('slow observer');
        await this.#pause(skewed(this.#random, ...NAP_MS));
      }
      if (chance(this.#random, BREAKS)) return;
    }
  }

  /** At the oldest revision that is kept, or from now on. */
  #beginAnew({ oldestRevision }: CompactedError): void {
    const oldest = Number(oldestRevision);
    this.#watches.compacted(this.#ports.name, this.#known, oldest);
    this.#known = chance(this.#random, 500) ? oldest - 1 : undefined;
  }

  #pause(ms: number): Promise<void> {
    return new Promise((resolve) => {
      this.#process.after(ms, resolve);
    });
  }
}
