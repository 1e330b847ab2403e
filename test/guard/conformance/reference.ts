/**
 * A guard over a small database in memory that has all that a guard can have: transactions that lock and roll back, an
 * operator, a server that refuses writes without a lease, a pool of one connection. Broken guards are made of it.
 */
import { admit, fenceOf, issuerOf, MAX_JUMP } from '../../../src/guard/fence.js';
import type { Fence } from '../../../src/guard/fence.js';
import { Mutex } from '../../../src/guard/mutex.js';
import type { FencedLease, Outcome, Rejected, Stale } from '../../../src/guard/types.js';
import type { Between, GuardedStore, GuardSubject, SubjectTenure } from '../../../src/guard/conformance/index.js';

export const NOTHING: Between = () => Promise.resolve();
const YEAR_MS = 366 * 86_400_000;

/** One step of a connection to the database. */
export function step(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}

export type Verdict =
  { readonly status: 'admitted'; readonly earlierIncarnation: string | undefined } | Stale | Rejected;

export type Result = Exclude<Outcome<undefined>, { status: 'missing' | 'retry' }>;

/** See the head of the file. Its parts are replaced one by one in `broken.ts`. */
export class Reference implements GuardedStore {
  readonly maxJump: bigint = MAX_JUMP;
  rows = new Map<string, string>();
  fences = new Map<string, Fence>();
  /** What the one connection of the pool was told, and the server asks. */
  sessionToken: bigint | undefined;
  nowMs = 0;
  /** So many transactions are committed before the process dies. */
  crashAfter = 0;
  #commitsLeft = Infinity;
  readonly #mutex = new Mutex();

  async open(lease: FencedLease): Promise<Outcome<SubjectTenure>> {
    const raised = await this.transaction(() => Promise.resolve(this.raise([lease], '')));
    if (raised.status !== 'applied') return raised;
    const value: SubjectTenure = { write: (item, text, between) => this.write(lease, item, text, between) };
    return { ...raised, value };
  }

  write(lease: FencedLease, item: string, value: string, between: Between): Promise<Outcome<undefined>> {
    return this.mutate([lease], item, value, between);
  }

  remove(lease: FencedLease, item: string): Promise<Outcome<undefined>> {
    return this.mutate([lease], item, undefined, NOTHING);
  }

  writeAll(leases: readonly FencedLease[], item: string, value: string): Promise<Outcome<undefined>> {
    return this.mutate(leases, item, value, NOTHING);
  }

  read(domain: string, item: string): Promise<string | undefined> {
    return Promise.resolve(this.rows.get(rowOf(domain, item)));
  }

  async writeAndCrash(lease: FencedLease, item: string, value: string): Promise<void> {
    this.#commitsLeft = this.crashAfter;
    await this.write(lease, item, value, NOTHING).catch(() => undefined);
    this.#commitsLeft = Infinity;
    this.sessionToken = undefined;
  }

  /** As a driver does that got no answer: sends the same again. */
  async writeLosingResponse(lease: FencedLease, item: string, value: string): Promise<Outcome<undefined>> {
    await this.write(lease, item, value, NOTHING);
    return this.write(lease, item, value, NOTHING);
  }

  restart(): Promise<void> {
    this.sessionToken = undefined;
    return Promise.resolve();
  }

  age(): Promise<void> {
    this.nowMs += YEAR_MS;
    return Promise.resolve();
  }

  reset(lease: FencedLease): Promise<void> {
    this.fences.set(lease.domain, fenceOf(lease));
    return Promise.resolve();
  }

  allowIssuer(domain: string, cluster: string): Promise<void> {
    const fence = this.fences.get(domain);
    if (fence !== undefined) this.fences.set(domain, { ...fence, issuer: issuerOf(cluster) });
    return Promise.resolve();
  }

  writeWithoutLease(domain: string, item: string, value: string): Promise<void> {
    if (this.sessionToken === undefined) return Promise.reject(new Error('the server was given no token'));
    this.rows.set(rowOf(domain, item), value);
    return Promise.resolve();
  }

  close(): Promise<void> {
    return Promise.resolve();
  }

  /** Check, change and raise in one transaction. */
  protected mutate(
    leases: readonly FencedLease[],
    item: string,
    value: string | undefined,
    between: Between,
  ): Promise<Outcome<undefined>> {
    return this.transaction(async () => {
      const outcome = this.raise(leases, item);
      if (outcome.status !== 'applied') return outcome;
      this.sessionToken = leases[0]?.token;
      await between();
      this.change(leases, item, value);
      return outcome;
    });
  }

  /** One after another; whatever throws leaves nothing. */
  protected transaction<T>(work: () => Promise<T>): Promise<T> {
    return this.#mutex.run(async () => {
      const [rows, fences] = [new Map(this.rows), new Map(this.fences)];
      try {
        await step();
        const result = await work();
        await step();
        if (this.#commitsLeft-- <= 0) throw new Error('the process was killed');
        return result;
      } catch (error) {
        [this.rows, this.fences] = [rows, fences];
        throw error;
      } finally {
        this.endSession();
      }
    });
  }

  protected endSession(): void {
    this.sessionToken = undefined;
  }

  protected change(leases: readonly FencedLease[], item: string, value: string | undefined): void {
    for (const { domain } of leases) {
      if (value === undefined) this.rows.delete(rowOf(domain, item));
      else this.rows.set(rowOf(domain, item), value);
    }
  }

  /** Checks all, then raises all. */
  protected raise(leases: readonly FencedLease[], item: string): Result {
    let earlierIncarnation: string | undefined;
    for (const lease of leases) {
      const verdict = this.admit(this.fences.get(this.fenceKey(lease.domain, item)), lease);
      if (verdict.status !== 'admitted') return verdict;
      earlierIncarnation ??= verdict.earlierIncarnation;
    }
    for (const lease of leases) this.setFence(this.fenceKey(lease.domain, item), fenceOf(lease));
    return { status: 'applied', value: undefined, earlierIncarnation };
  }

  protected admit(fence: Fence | undefined, lease: FencedLease): Verdict {
    return admit(fence, lease);
  }

  protected setFence(key: string, fence: Fence): void {
    this.fences.set(key, fence);
  }

  protected fenceKey(...[domain]: [domain: string, item: string]): string {
    return domain;
  }
}

export function rowOf(domain: string, item: string): string {
  return `${domain} ${item}`;
}

export function subjectOf(name: string, create: () => GuardedStore): GuardSubject {
  return { name, create: () => Promise.resolve(create()) };
}
