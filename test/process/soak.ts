/**
 * Load on a cluster while its nodes are killed, and the account of what was acknowledged: every lease that a client was
 * told it has must still be its own afterwards, every release must have happened, and in every domain each grant must
 * have a greater token than all before.
 */
import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import type { AcquireAnswer, AcquireCall, LeaseRef } from '../../src/base/api.js';
import type { Domain, RequestId } from '../../src/base/ids.js';
import { ZERO_REVISION } from '../../src/base/revision.js';
import type { Revision } from '../../src/base/revision.js';
import type { ProcessCluster, ProcessNode } from './cluster.js';
import { PLAIN } from '../support/answers.js';

/** Long: whatever is lost in a minute was lost by us, not by time. */
const TTL_MS = 600_000;
const WORKERS = 12;
/** Every worker takes and gives back its hot domain, and keeps each so many-th lease of others. */
const KEEP_EVERY = 4;

/** See the head of the file. */
export class Soak {
  /** Everything that should not have happened, in the order noticed. */
  readonly violations: string[] = [];
  /** Acknowledged and not given back. */
  readonly kept = new Map<Domain, Revision>();
  grants = 0;
  /** Per domain: the greatest token acknowledged. */
  readonly #greatest = new Map<Domain, Revision>();
  readonly #cluster: ProcessCluster;
  readonly #running: Promise<void>[] = [];
  #stop = false;
  #paused = false;
  #busy = 0;
  #seen: Revision = ZERO_REVISION;

  constructor(cluster: ProcessCluster) {
    this.#cluster = cluster;
  }

  start(): void {
    for (let worker = 0; worker < WORKERS; worker++) this.#running.push(this.#work(worker));
  }

  /** Lets what is under way end and begins nothing more. */
  async stop(): Promise<void> {
    this.#stop = true;
    await Promise.all(this.#running);
  }

  /** As {@link stop}, until {@link resume}: acknowledged state does not change meanwhile. */
  async pause(): Promise<void> {
    this.#paused = true;
    while (this.#busy > 0) await sleep(5);
  }

  resume(): void {
    this.#paused = false;
  }

  /** A new history begins: what was kept is gone, but no token may come again. */
  forgetLeases(): void {
    this.kept.clear();
    this.#seen = ZERO_REVISION;
  }

  /** Asks for every lease that was acknowledged and not given back. Call while paused or stopped. */
  async verifyKept(): Promise<void> {
    const leases: LeaseRef[] = [...this.kept].map(([domain, token]) => ({ domain, token }));
    for (let from = 0; from < leases.length; from += 1_000) {
      const part = leases.slice(from, from + 1_000);
      const results = await this.#repeat(
        async (node) => (await this.#cluster.call(node, { type: 'renew', leases: part }, 5_000)).answer.results,
      );
      for (const [at, result] of results.entries()) {
        const lease = part[at];
        if (lease === undefined || result.type === 'live') continue;
        this.violations.push(`lost: ${lease.domain} ${lease.token} is ${result.ended.reason}`);
        this.kept.delete(lease.domain);
      }
    }
  }

  /** Takes every domain once more: each must come with a greater token. For the end. */
  async takeAllAgain(): Promise<void> {
    for (const domain of [...this.#greatest.keys()].slice(-300)) {
      if (!this.kept.has(domain)) await this.#acquire(domain);
    }
  }

  async #work(worker: number): Promise<void> {
    const hot = `hot/${worker}` as Domain;
    for (let turn = 0; !this.#stop; turn++) {
      if (this.#paused) {
        await sleep(10);
        continue;
      }
      this.#busy++;
      try {
        const domain = turn % KEEP_EVERY === 0 ? (`kept/${worker}/${turn}` as Domain) : hot;
        const token = await this.#acquire(domain);
        if (token !== undefined && domain === hot) await this.#release({ domain, token });
      } catch (error) {
        this.violations.push(`worker ${worker}: ${String(error)}`);
      } finally {
        this.#busy--;
      }
    }
  }

  async #acquire(domain: Domain): Promise<Revision | undefined> {
    const call: AcquireCall = {
      type: 'acquire',
      domain,
      requestId: randomUUID() as RequestId,
      holder: 'soak',
      ttlMs: TTL_MS,
      metadata: [],
      ...PLAIN,
      seenRevision: this.#seen,
    };
    const { outcome } = await this.#repeat<AcquireAnswer>(
      async (node) => (await this.#cluster.call(node, call, 5_000)).answer,
    );
    if (outcome.type !== 'granted') {
      this.violations.push(`${domain} is free and was not granted: ${JSON.stringify(outcome)}`);
      return undefined;
    }
    const { token } = outcome.lease;
    const before = this.#greatest.get(domain);
    if (before !== undefined && token <= before)
      this.violations.push(`${domain} was granted with ${token} after ${before}`);
    this.#greatest.set(domain, token);
    this.kept.set(domain, token);
    this.grants++;
    if (token > this.#seen) this.#seen = token;
    return token;
  }

  async #release(lease: LeaseRef): Promise<void> {
    const answer = await this.#repeat(
      async (node) => (await this.#cluster.call(node, { type: 'release', lease }, 5_000)).answer,
    );
    if (!answer.released)
      this.violations.push(
        `lost before its release: ${lease.domain} ${lease.token} is ${answer.ended?.reason ?? 'gone'}`,
      );
    this.kept.delete(lease.domain);
  }

  /** As any client would: another node, the same request, until it is answered. */
  async #repeat<T>(once: (node: ProcessNode) => Promise<T>): Promise<T> {
    let last: unknown;
    const end = Date.now() + 60_000;
    for (let attempt = 0; Date.now() < end; attempt++) {
      const running = this.#cluster.nodes.filter(({ child }) => child !== undefined);
      const node = running[(attempt + this.#busy) % Math.max(1, running.length)];
      if (node === undefined) await sleep(20);
      else {
        try {
          return await once(node);
        } catch (error) {
          last = error;
          await sleep(10);
        }
      }
    }
    throw new Error('no answer within 60 s', { cause: last });
  }
}
