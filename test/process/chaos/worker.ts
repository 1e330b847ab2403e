/** A client process of a chaos run: some users of the library, some of stock gRPC. Ends when it is told to. */
import type * as library from '../../../src/client/index.js';
import { createRandom, nextUint32 } from '../../../src/base/random.js';
import { Caller } from './caller.js';
import type { ClientEvent } from './events.js';
import { hold } from './holder.js';
import { Keeper } from './keeper.js';
import { Notebook } from './notebook.js';
import { observe } from './observer.js';
import { orderOf } from './orders.js';
import type { WorkerOrder } from './orders.js';
import { StockChannels } from './stock-channel.js';

const order = orderOf() as WorkerOrder;
const { connect } = (await import(`${order.package}/dist/client/index.js`)) as typeof library;
const client = connect({ endpoints: order.endpoints, holder: order.name, callTimeoutMs: 10_000 });
const channels = new StockChannels(order.endpoints);
const notebook = new Notebook<ClientEvent>(order.notebook);
const random = createRandom(order.seed);

const end = new AbortController();
const stopped = (): boolean => end.signal.aborted;
process.on('message', () => {
  end.abort();
});
// An orphan must not outlive its run.
process.on('disconnect', () => process.exit());
process.send?.('ready');

const loops: Promise<void>[] = [];
for (let at = 1; at <= order.holders; at++) {
  const own = { name: `${order.name}/holder-${at}`, random: createRandom(nextUint32(random)) };
  loops.push(hold({ ...own, client, notebook, resource: order.resource, stopped }));
}
for (let at = 1; at <= order.callers; at++) {
  const own = { name: `${order.name}/caller-${at}`, random: createRandom(nextUint32(random)) };
  loops.push(new Caller({ ...own, channels, notebook, stopped }).run());
}
const own = { name: `${order.name}/keeper`, random: createRandom(nextUint32(random)) };
loops.push(new Keeper({ ...own, channels, notebook, stopped }).run());
loops.push(observe({ name: `${order.name}/observer`, client, notebook, stop: end.signal }));
await Promise.all(loops);
await client.close();
channels.close();
process.exit();
