/** Names with several slots: at most so many holders at once. */
import type { Lease } from './lease.js';
import type { AcquireOptions } from './options.js';

/** For the leases of {@link Slots}: the number of slots is fixed already. */
export type SlotOptions = Omit<AcquireOptions, 'slots'>;

/** What slots need from their client. */
interface Acquirer {
  acquire(domain: string, options: AcquireOptions): Promise<Lease>;
  tryAcquire(domain: string, options: AcquireOptions): Promise<Lease | undefined>;
  withLease<T>(domain: string, options: AcquireOptions, work: (lease: Lease) => Promise<T> | T): Promise<T>;
}

/**
 * A name with several slots, made by `client.slots`. Each lease is of one slot: its `domain` is `<name>#<k>`, and each
 * slot has an order of tokens of its own, so a guard has one fence for each. All wait in one queue. With one slot the name
 * is an ordinary domain, and the lease's `domain` is the name itself.
 */
export class Slots {
  /** The name. */
  readonly name: string;
  /** How many may hold at once. */
  readonly count: number;
  readonly #client: Acquirer;

  /** Use `client.slots`. */
  constructor(client: Acquirer, name: string, count: number) {
    this.name = name;
    this.count = count;
    this.#client = client;
  }

  /** As `client.acquire`, for whichever slot is free first. */
  acquire(options: SlotOptions = {}): Promise<Lease> {
    return this.#client.acquire(this.name, { ...options, slots: this.count });
  }

  /** As `client.tryAcquire`, for any slot that is free. */
  tryAcquire(options: SlotOptions = {}): Promise<Lease | undefined> {
    return this.#client.tryAcquire(this.name, { ...options, slots: this.count });
  }

  /** As `client.withLease`, for whichever slot is free first. */
  withLease<T>(options: SlotOptions, work: (lease: Lease) => Promise<T> | T): Promise<T> {
    return this.#client.withLease(this.name, { ...options, slots: this.count }, work);
  }
}
