/** Leases, expectations and pauses that the cases share. */
import type { FencedLease, Outcome, Rejected } from '../types.js';
import type { Between, GuardedStore } from './subject.js';

/** Most cases have one domain with one item. */
export const DOMAIN = 'conformance/a';
export const OTHER_DOMAIN = 'conformance/b';
export const ITEM = 'item';

const CLUSTER = 'conformance';
export const OTHER_CLUSTER = 'elsewhere';
const INCARNATION = 'a'.repeat(32);
export const OTHER_INCARNATION = 'b'.repeat(32);

/** So often a guard may say `retry` to one operation. Nothing here gives it cause for more. */
const MAX_RETRIES = 100;

export function leaseOf(token: bigint | number, more: Partial<FencedLease> = {}): FencedLease {
  return { domain: DOMAIN, token: BigInt(token), cluster: CLUSTER, incarnation: INCARNATION, ...more };
}

/** For messages. */
export function show(value: unknown): string {
  return JSON.stringify(value, (_, part: unknown) =>
    typeof part === 'bigint' ? `${part}n` : part instanceof Error ? part.message : part,
  );
}

export function check(condition: boolean, message: string): void {
  if (!condition) throw new Error(message);
}

export const NOTHING: Between = () => Promise.resolve();

/** Long enough for what is not held up to come to its end; nothing is concluded when it does not, in milliseconds. */
const GRACE_MS = 100;

export function sleep(ms: number): Promise<void> {
  return new Promise((resolve) => {
    setTimeout(resolve, ms);
  });
}

/** Waits until `work` ends, but not for long. */
export async function forAWhile(work: Promise<unknown>): Promise<void> {
  const ended = work.then(
    () => undefined,
    () => undefined,
  );
  await Promise.race([ended, sleep(GRACE_MS)]);
}

/** Does it again while the guard says `retry`, as its callers may. */
export async function outcomeOf<T>(operation: () => Promise<Outcome<T>>): Promise<Outcome<T>> {
  for (let tries = 0; ; tries++) {
    const outcome = await operation();
    if (outcome.status !== 'retry' || tries === MAX_RETRIES) return outcome;
    await sleep(tries);
  }
}

/** The operations of a store, each with what is expected of it. */
export class Actor {
  readonly store: GuardedStore;

  constructor(store: GuardedStore) {
    this.store = store;
  }

  write(lease: FencedLease, value: string, item = ITEM, between = NOTHING): Promise<Outcome<unknown>> {
    return outcomeOf(() => this.store.write(lease, item, value, between));
  }

  async applies(lease: FencedLease, value: string, item = ITEM): Promise<string | undefined> {
    return applied(await this.write(lease, value, item), `a write under token ${lease.token}`).earlierIncarnation;
  }

  /** The write is refused as stale, and the data stay. */
  async refuses(lease: FencedLease, fence: bigint, item = ITEM): Promise<void> {
    const before = await this.store.read(lease.domain, item);
    stale(await this.write(lease, `stale ${lease.token}`, item), fence, `a write under token ${lease.token}`);
    await this.holds(before, item, lease.domain);
  }

  /** The write is rejected for this reason, and the data stay. */
  async rejects(lease: FencedLease, reason: Rejected['reason']): Promise<void> {
    const before = await this.store.read(lease.domain, ITEM);
    const outcome = await this.write(lease, 'rejected');
    const what = `a write under token ${lease.token} of cluster ${lease.cluster}, incarnation ${lease.incarnation}`;
    check(
      outcome.status === 'rejected' && outcome.reason === reason,
      `${what} ended as ${show(outcome)}; it has to be rejected for its ${reason}`,
    );
    await this.holds(before);
  }

  async holds(value: string | undefined, item = ITEM, domain = DOMAIN): Promise<void> {
    const found = await this.store.read(domain, item);
    check(found === value, `${domain} ${item} holds ${show(found)}; it has to hold ${show(value)}`);
  }

  async opens(lease: FencedLease): Promise<{ write(value: string, between?: Between): Promise<Outcome<unknown>> }> {
    const outcome = await outcomeOf(() => this.store.open(lease));
    const { value: tenure } = applied(outcome, `open under token ${lease.token}`);
    return { write: (value, between = NOTHING) => outcomeOf(() => tenure.write(ITEM, value, between)) };
  }
}

/** The outcome, which has to be this one. */
export function applied<T>(outcome: Outcome<T>, what: string): Extract<Outcome<T>, { readonly status: 'applied' }> {
  if (outcome.status === 'applied') return outcome;
  throw new Error(`${what} ended as ${show(outcome)}; it has to be applied`);
}

export function stale(outcome: Outcome<unknown>, fence: bigint, what: string): void {
  check(
    outcome.status === 'stale' && outcome.fence === fence,
    `${what} ended as ${show(outcome)}; it has to be stale, with fence ${fence}`,
  );
}

/** Holds a write up between its check and its commit. */
export class Gate {
  isOpen = false;
  readonly #reached: Promise<void>;
  readonly #opened: Promise<void>;
  #reach: () => void = () => undefined;
  #open: () => void = () => undefined;

  constructor() {
    this.#reached = new Promise((resolve) => {
      this.#reach = resolve;
    });
    this.#opened = new Promise((resolve) => {
      this.#open = resolve;
    });
  }

  readonly pass: Between = () => {
    this.#reach();
    return this.#opened;
  };

  open(): void {
    this.isOpen = true;
    this.#open();
  }

  /** Waits until `write` is here. */
  async reached(write: Promise<unknown>): Promise<void> {
    const ended = write.then(
      (outcome) => {
        throw new Error(
          `a write ended as ${show(outcome)} and never awaited \`between\`. If the guard runs no work between its check and its commit, skip this case and say so`,
        );
      },
      (error: unknown) => {
        throw error;
      },
    );
    await Promise.race([this.#reached, ended]);
  }
}

/** A method that the case needs. Throws when the store lacks it. */
export function must<K extends keyof GuardedStore>(store: GuardedStore, name: K): NonNullable<GuardedStore[K]> {
  const value = store[name];
  if (value === undefined) throw new Error(`the store has no \`${name}\`: add it, or skip this case and say why`);
  return (typeof value === 'function' ? value.bind(store) : value) as NonNullable<GuardedStore[K]>;
}
