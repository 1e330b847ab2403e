/**
 * A worker as many are written: acquires a lease, reads, and appends its name to what it has read, when it is told to. It
 * does not look at its lease again before it writes: that is what a guard is for.
 */
import type * as library from '../../../src/client/index.js';
import { orderOf } from '../chaos/orders.js';
import { connectTo } from './connections.js';
import type { Status, Where } from './resource.js';

/** What a worker is started with. */
export interface WorkerOrder {
  readonly name: string;
  readonly package: string;
  readonly endpoints: readonly string[];
  readonly domain: string;
  readonly ttlMs: number;
  readonly waitMs: number;
  readonly where: Where;
  readonly guarded: boolean;
}

/** What a worker says. */
export type WorkerNews =
  /** It has the lease, has begun its tenure at the resource, and has read. */
  | { readonly type: 'read'; readonly token: string; readonly opened: Status; readonly value: string }
  /** It has tried to write. `held`: what its handle said before. */
  | { readonly type: 'wrote'; readonly held: boolean; readonly status: Status };

/** What a worker is told. */
export interface WorkerTask {
  readonly type: 'write';
}

const order = orderOf() as WorkerOrder;
// An orphan must not outlive its test.
process.on('disconnect', () => process.exit());

const { connect } = (await import(`${order.package}/dist/client/index.js`)) as typeof library;
const client = connect({ endpoints: order.endpoints, holder: order.name });
// Before the lease: loading a driver can take as long as a lease lasts on a busy machine.
const resource = await connectTo(order.where, order.guarded, order.package);
const lease = await client.acquire(order.domain, { ttlMs: order.ttlMs, waitMs: order.waitMs });
const opened = await resource.open(lease);
let value = await resource.read();
say({ type: 'read', token: lease.token.toString(), opened, value });

process.on('message', () => {
  const write = async (): Promise<void> => {
    const held = lease.isHeld();
    say({ type: 'wrote', held, status: await resource.write(lease, `${value}${order.name} `) });
    value = await resource.read();
  };
  write().catch((error: unknown) => {
    throw error;
  });
});

function say(news: WorkerNews): void {
  process.send?.(news);
}
