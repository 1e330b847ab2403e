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
export interface Slots {
  /** The name. */
  readonly name: string;
  /** How many may hold at once. */
  readonly count: number;
  /** As `client.acquire`, for whichever slot is free first. */
  acquire(options?: SlotOptions): Promise<Lease>;
  /** As `client.tryAcquire`, for any slot that is free. */
  tryAcquire(options?: SlotOptions): Promise<Lease | undefined>;
  /** As `client.withLease`, for whichever slot is free first. */
  withLease<T>(options: SlotOptions, work: (lease: Lease) => Promise<T> | T): Promise<T>;
}

/** The slots of a name that was checked. */
export function slotsOf(client: Acquirer, name: string, count: number): Slots {
  return {
    name,
    count,
    acquire: (options = {}) => client.acquire(name, { ...options, slots: count }),
    tryAcquire: (options = {}) => client.tryAcquire(name, { ...options, slots: count }),
    withLease: (options, work) => client.withLease(name, { ...options, slots: count }, work),
  };
}
