/** A fresh client that must be served once everything is healed: it acquires, keeps its lease by renewals, and releases. */
import type { Domain } from '../../../src/base/ids.js';
import { createClient } from '../../../src/client/client.js';
import type { Client } from '../../../src/client/client.js';
import { FencepostError } from '../../../src/client/errors.js';
import type { Claim } from '../judges/holds.js';
import { chance } from '../chance.js';
import { endpointOf, simChannels } from './channel.js';
import type { ClientPorts, SimClient } from './client-ports.js';
import { ClientProcess } from './process.js';
import { clientSurroundings } from './surroundings.js';
import { simWatches } from './watching.js';

/** In 1 000 runs: how often it keeps its lease beyond a TTL. In the others it renews once or twice: time costs events. */
const BEYOND_TTL = 350;

/** See the head of the file. Tries again until it succeeds: whoever asks for it sets the bound. */
export class Probe implements SimClient {
  readonly leaked = 0;
  readonly #process: ClientProcess;
  done = false;
  readonly #ports: ClientPorts;
  readonly #domain: Domain;
  readonly #keepTtls: number;

  constructor(ports: ClientPorts, domain: Domain) {
    const { surroundings, machine } = ports;
    this.#ports = ports;
    this.#domain = domain;
    this.#keepTtls = chance(surroundings.random, BEYOND_TTL) ? 1.2 : 0.5;
    this.#process = new ClientProcess(machine, surroundings.scheduler, surroundings.random);
  }

  get idle(): boolean {
    return this.done;
  }

  start(): void {
    const { surroundings, servers, links, attempts, codecs, name, parameters, report } = this.#ports;
    const process = this.#process;
    const endpoints = servers().map(({ node }) => endpointOf(node));
    const ports = { surroundings, process, links, attempts, client: name, life: name, servers, codecs };
    const client = createClient(
      { endpoints, holder: name },
      clientSurroundings(process, surroundings.random),
      simChannels(ports),
      simWatches(ports, parameters.window),
    );
    this.#serve(client).catch((error: unknown) => {
      report({ code: 'CLIENT', text: String(error) });
    });
  }

  stop(): void {
    // It ends by itself.
  }

  claims(): readonly Claim[] {
    return [];
  }

  halt(): void {
    // Nothing disturbs it.
  }

  goOn(): void {
    // Likewise.
  }

  async #serve(client: Client): Promise<void> {
    const [ttlMs] = this.#ports.parameters.ttlMs;
    for (;;) {
      try {
        const lease = await client.acquire(this.#domain, { ttlMs: Math.ceil(ttlMs), waitMs: Math.ceil(2 * ttlMs) });
        await new Promise<void>((resolve) => {
          this.#process.after(this.#keepTtls * ttlMs, resolve);
        });
        const kept = lease.isHeld();
        await lease.release();
        if (!kept) continue;
        const { lease: after } = await client.get(this.#domain);
        if (after?.token === lease.token) continue;
        await client.close();
        this.done = true;
        return;
      } catch (error) {
        if (!(error instanceof FencepostError)) throw error;
      }
    }
  }
}
