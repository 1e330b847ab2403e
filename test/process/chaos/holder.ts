/**
 * A user of the client library: acquires, watches `isHeld()`, writes to the fenced resource, releases. Sometimes it is
 * careless: it computes for longer than it may and writes without another look, or goes on after its lease was lost.
 */
import { setTimeout as pause } from 'node:timers/promises';
import type { Client, Lease } from '../../../src/client/index.js';
import { nextInt } from '../../../src/base/random.js';
import type { Random } from '../../../src/base/random.js';
import { now } from './clock.js';
import { codeOf } from './codes.js';
import type { ClientEvent } from './events.js';
import type { Notebook } from './notebook.js';
import { epochAt, POOL_SLOTS } from './orders.js';

/** What is fought for at a time, with how many domains of each kind, and how often in 20. */
const KINDS = [
  { kind: 'held', domains: 4, share: 12, slots: 1, coolDownMs: 0 },
  { kind: 'pooled', domains: 1, share: 5, slots: POOL_SLOTS, coolDownMs: 0 },
  { kind: 'cooled', domains: 2, share: 3, slots: 1, coolDownMs: 2_000 },
] as const;

/** What a holder needs. */
export interface HolderPorts {
  readonly name: string;
  readonly client: Client;
  readonly notebook: Notebook<ClientEvent>;
  readonly random: Random;
  /** URL. */
  readonly resource: string;
  readonly stopped: () => boolean;
}

/** Goes on until it is stopped. */
export async function hold(ports: HolderPorts): Promise<void> {
  for (let turn = 0; !ports.stopped(); turn++) {
    const { kind, domains, slots, coolDownMs } = drawKind(ports.random);
    const domain = `${kind}/${epochAt(now())}/${nextInt(ports.random, 1, domains)}`;
    const from = now();
    try {
      const waitMs = nextInt(ports.random, 0, 5_000);
      const ttlMs = nextInt(ports.random, 3_000, 4_000);
      const lease = await ports.client.acquire(domain, { ttlMs, waitMs, slots, coolDownMs });
      await new Tenure(ports, lease, `${ports.name}/${turn}`).spend(from, coolDownMs);
    } catch (error) {
      ports.notebook.note({ type: 'missed', at: now(), domain, code: codeOf(error) });
      await pause(nextInt(ports.random, 50, 400));
    }
  }
}

function drawKind(random: Random): (typeof KINDS)[number] {
  let left = nextInt(random, 1, 20);
  for (const kind of KINDS) if ((left -= kind.share) <= 0) return kind;
  return KINDS[0];
}

/** One lease in the hands of a holder. */
class Tenure {
  readonly #ports: HolderPorts;
  readonly #lease: Lease;
  readonly #facts: { readonly domain: string; readonly token: number; readonly handle: string };
  /** False when it was found lost. */
  #goesOn = true;

  constructor(ports: HolderPorts, lease: Lease, handle: string) {
    this.#ports = ports;
    this.#lease = lease;
    this.#facts = { domain: lease.domain, token: Number(lease.token), handle };
  }

  async spend(from: number, coolDownMs: number): Promise<void> {
    const { notebook, random, stopped } = this.#ports;
    notebook.note({ type: 'granted', at: now(), from, ...this.#facts, ttlMs: this.#lease.ttlMs, coolDownMs });
    await this.#send('open');
    // Half of them long enough to outlive any fault that lets the lease pass on.
    const until = now() + (nextInt(random, 0, 1) === 0 ? nextInt(random, 5_000, 12_000) : nextInt(random, 200, 2_000));
    const goesOn = (): boolean => now() < until && !stopped() && this.#goesOn;
    await Promise.all([this.#watch(goesOn), this.#work(goesOn)]);
    if (this.#lease.signal.aborted) await this.#afterLoss();
    else {
      notebook.note({ type: 'releasing', at: now(), ...this.#facts });
      await this.#lease.release();
    }
  }

  /** Looks at the handle all the time, whatever its work waits for. */
  async #watch(goesOn: () => boolean): Promise<void> {
    while (goesOn()) {
      this.#goesOn = this.#claim();
      await pause(nextInt(this.#ports.random, 20, 120));
    }
  }

  async #work(goesOn: () => boolean): Promise<void> {
    const { random } = this.#ports;
    while (goesOn()) {
      const choice = nextInt(random, 0, 19);
      if (choice === 0) await this.#verify();
      else if (choice === 1) {
        // Computes for too long, and writes without another look.
        await pause(nextInt(random, 500, 4_500));
        await this.#send('write');
      } else if (choice < 8) await this.#send('write');
      await pause(nextInt(random, 20, 150));
    }
  }

  #claim(): boolean {
    const from = now();
    const held = this.#lease.isHeld();
    const at = now();
    if (held) this.#ports.notebook.note({ type: 'claimed', from, at, ...this.#facts });
    // In jeopardy it waits for the renewal that is under way.
    return held || this.#lease.state === 'jeopardy';
  }

  async #verify(): Promise<void> {
    const from = now();
    try {
      const { current } = await this.#ports.client.verify(this.#lease.domain, this.#lease.token);
      this.#ports.notebook.note({ type: 'verified', from, at: now(), ...this.#facts, current });
    } catch (error) {
      codeOf(error);
    }
  }

  async #afterLoss(): Promise<void> {
    const { notebook, random } = this.#ports;
    const reason: unknown = this.#lease.signal.reason;
    const ended =
      reason instanceof Error && 'ended' in reason ? (reason.ended as { reason: string } | undefined) : undefined;
    notebook.note({ type: 'lost', at: now(), ...this.#facts, why: ended?.reason ?? 'deadline' });
    for (let writes = nextInt(random, 0, 2); writes > 0; writes--) {
      await pause(nextInt(random, 0, 2_000));
      await this.#send('write');
    }
  }

  async #send(path: 'open' | 'write'): Promise<void> {
    const { domain, token, cluster, incarnation } = this.#lease;
    const body = JSON.stringify({ domain, token: token.toString(), cluster, incarnation });
    const from = now();
    let status: 'applied' | 'stale' | 'rejected' | 'failed' = 'failed';
    try {
      const response = await fetch(`${this.#ports.resource}/${path}`, { method: 'POST', body });
      if (response.ok) ({ status } = (await response.json()) as { status: typeof status });
    } catch {
      // The resource is being restarted: whether it wrote is unknown.
    }
    this.#ports.notebook.note({ type: 'wrote', from, at: now(), ...this.#facts, status });
  }
}
