/**
 * A watcher: processes, one after the other, that observe a prefix with the production client, one observation after the
 * other. It goes on where it stopped, reads nothing for a while now and then, is killed now and then, and begins anew when
 * it was told that it came too late.
 */
import type { Random } from '../../../src/base/random.js';
import { createClient } from '../../../src/client/client.js';
import type { Client } from '../../../src/client/client.js';
import { CompactedError, FencepostError } from '../../../src/client/errors.js';
import type { OpenedWatch, OpenWatch } from '../../../src/client/watch-channel.js';
import { between, chance, pick, skewed, weighted } from '../chance.js';
import type { Claim } from '../judges/holds.js';
import type { Watches } from '../judges/watches.js';
import { endpointOf, simChannels } from './channel.js';
import type { ChannelPorts } from './channel.js';
import type { ClientPorts, SimClient } from './client-ports.js';
import { ClientProcess } from './process.js';
import { clientSurroundings } from './surroundings.js';
import type { ClientSurroundings } from './surroundings.js';
import { simWatches } from './watching.js';

/** In 1 000 observations: after how many it stops observing, and goes on with an observation of its own. */
const BREAKS = 20;
/** In 1 000 observations: after how many its process is killed. */
const DEATHS = 5;
/** Milliseconds until the next process runs, at least and at most. */
const REBOOT_MS = [10, 1_000] as const;
/** How long it reads nothing, in milliseconds at least and at most. */
const NAP_MS = [5, 2_000] as const;
/** No node may serve for so long before the client says so, in milliseconds. */
const GIVE_UP_MS = 5_000;

/** One life of the process. */
interface Life {
  readonly process: ClientProcess;
  readonly client: Client;
  readonly around: ClientSurroundings;
  /** Streams that its client has opened and not closed. */
  readonly streams: Set<OpenedWatch>;
}

/** See the head of the file. */
export class Watcher implements SimClient {
  readonly #ports: ClientPorts;
  readonly #watches: Watches;
  readonly #random: Random;
  readonly #prefix: string;
  #life: Life | undefined;
  /** What keeps its machine from running. */
  readonly #halts = new Set<'stopped' | 'asleep'>();
  /** The history of what arrived last, and up to where all of it is known. */
  #incarnation = '';
  #known: number | undefined;
  #stopped = false;
  #ending = false;
  #idle = false;
  #leaked = 0;

  constructor(ports: ClientPorts, watches: Watches) {
    this.#ports = ports;
    this.#watches = watches;
    this.#random = ports.surroundings.random;
    this.#prefix = weighted(this.#random, [
      ['', 3],
      ['d1', 2],
      [pick(this.#random, ports.domains), 3],
      ['probe', 1],
    ]);
  }

  /** Whether it was told of everything below its prefix, in the history that it observes. */
  get knowsAll(): boolean {
    return this.#known !== undefined && this.#watches.isAll(this.#incarnation, this.#prefix, this.#known);
  }

  /** Its client has closed and observes no more. Only after {@link end}. */
  get idle(): boolean {
    return this.#idle;
  }

  get leaked(): number {
    return this.#leaked;
  }

  start(): void {
    this.#boot();
  }

  /** Reads without a pause from now on: what is to come is the end. */
  stop(): void {
    this.#stopped = true;
  }

  /** It knows all that it wanted to know: closes its client. Only after {@link stop}, and once. */
  end(): void {
    this.#ending = true;
    const life = this.#life;
    if (life === undefined) this.#idle = true;
    else this.#check(life.client.close());
  }

  claims(): readonly Claim[] {
    return [];
  }

  halt(why: 'stopped' | 'asleep'): void {
    this.#halts.add(why);
    this.#life?.process.halt(why);
  }

  goOn(why: 'stopped' | 'asleep'): void {
    this.#halts.delete(why);
    this.#life?.process.goOn(why);
  }

  #boot(): void {
    if (this.#ending) return;
    if (this.#halts.size > 0) {
      this.#bootLater();
      return;
    }
    const { surroundings, machine, name, codecs, servers, links, attempts } = this.#ports;
    const process = new ClientProcess(machine, surroundings.scheduler, this.#random);
    const ports = { surroundings, process, links, attempts, client: name, life: name, servers, codecs };
    const around = clientSurroundings(process, this.#random);
    const streams = new Set<OpenedWatch>();
    const options = {
      endpoints: servers().map(({ node }) => endpointOf(node)),
      holder: name,
      callTimeoutMs: GIVE_UP_MS,
    };
    const client = createClient(options, around, simChannels(ports), this.#counted(ports, streams));
    const life = { process, client, around, streams };
    this.#life = life;
    this.#check(this.#observeOn(life));
  }

  #bootLater(): void {
    this.#ports.surroundings.scheduler.after(between(this.#random, ...REBOOT_MS), () => {
      this.#boot();
    });
  }

  /** Streams that are counted while they are open, and of which the history is noted. */
  #counted(ports: ChannelPorts, streams: Set<OpenedWatch>): OpenWatch {
    const open = simWatches(ports, this.#ports.parameters.window);
    return (endpoint, call, listener) => {
      const stream = open(endpoint, call, {
        message: (message) => {
          // All that one stream tells is of one history; the next one is opened when this is read.
          this.#incarnation = message.header.incarnation;
          listener.message(message);
        },
        end: (end) => {
          listener.end(end);
        },
      });
      const opened: OpenedWatch = {
        pause: () => {
          stream.pause();
        },
        resume: () => {
          stream.resume();
        },
        close: () => {
          streams.delete(opened);
          stream.close();
        },
      };
      streams.add(opened);
      return opened;
    };
  }

  /** Until its client is closed; for ever when its process is killed. */
  async #observeOn(life: Life): Promise<void> {
    while (!this.#ending) {
      try {
        await this.#observe(life);
      } catch (error) {
        if (!(error instanceof FencepostError)) throw error;
        this.#ports.surroundings.coverage.count(`observer told ${error.code}`);
        if (error instanceof CompactedError) this.#beginAnew(error);
      }
      await this.#pause(life, between(this.#random, 1, 50));
    }
    this.#leaked = life.around.openTimers() + life.streams.size;
    this.#idle = true;
  }

  async #observe(life: Life): Promise<void> {
    const { name, parameters, surroundings } = this.#ports;
    const from = this.#known === undefined ? {} : { from: BigInt(this.#known + 1) };
    for await (const observation of life.client.observe(this.#prefix, from)) {
      this.#watches.observed(name, this.#incarnation, this.#prefix, this.#known, observation);
      this.#known = Number(observation.revision);
      if (this.#stopped) continue;
      if (chance(this.#random, parameters.naps)) {
        surroundings.coverage.count('slow observer');
        await this.#pause(life, skewed(this.#random, ...NAP_MS));
      }
      if (chance(this.#random, DEATHS)) {
        this.#die(life);
        // Nothing comes after a death.
        await new Promise(() => undefined);
      }
      if (chance(this.#random, BREAKS)) return;
    }
  }

  /** The next process goes on where this one was. */
  #die({ process }: Life): void {
    this.#ports.surroundings.coverage.count('observer killed');
    process.end();
    this.#life = undefined;
    this.#bootLater();
  }

  /** At the oldest revision that is kept, or from now on. */
  #beginAnew({ oldestRevision }: CompactedError): void {
    const oldest = Number(oldestRevision);
    this.#watches.compacted(this.#ports.name, this.#known, oldest);
    this.#known = chance(this.#random, 500) ? oldest - 1 : undefined;
  }

  #pause({ process }: Life, ms: number): Promise<void> {
    return new Promise((resolve) => {
      process.after(ms, resolve);
    });
  }

  #check(work: Promise<void>): void {
    work.catch((error: unknown) => {
      this.#ports.report({ code: 'CLIENT', text: String(error) });
    });
  }
}
