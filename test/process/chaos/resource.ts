/**
 * The fenced resource, a process of its own: LevelDB behind the production guard, over HTTP. Notes every write that was
 * committed, in their order.
 *
 *     POST /open     {domain, token, cluster, incarnation}
 *     POST /write    the same
 */
import { createServer } from 'node:http';
import { Level } from 'level';
import type * as guard from '../../../src/guard/leveldb.js';
import type { FencedLease } from '../../../src/guard/types.js';
import { now } from './clock.js';
import type { Applied } from './events.js';
import { Notebook } from './notebook.js';
import { orderOf } from './orders.js';
import type { ResourceOrder } from './orders.js';

const order = orderOf() as ResourceOrder;
const { levelFence } = (await import(`${order.package}/dist/guard/leveldb.js`)) as typeof guard;
const db = new Level(order.directory);
await db.open();
const fence = levelFence(db);
const notebook = new Notebook<Applied>(order.notebook);

async function answer(path: string, body: Record<'domain' | 'token' | 'cluster' | 'incarnation', string>) {
  const lease: FencedLease = { ...body, token: BigInt(body.token) };
  const { domain } = lease;
  const outcome =
    path === '/open'
      ? await fence.open(lease)
      : await fence.run(lease, async (data) => {
          data.put(domain, String(Number((await data.get(domain)) ?? 0) + 1));
        });
  if (outcome.status === 'applied') notebook.note({ type: 'applied', at: now(), domain, token: Number(lease.token) });
  return { status: outcome.status };
}

const server = createServer((request, response) => {
  const serve = async (): Promise<void> => {
    let text = '';
    for await (const chunk of request) text += String(chunk);
    response.end(JSON.stringify(await answer(request.url ?? '', JSON.parse(text) as Parameters<typeof answer>[1])));
  };
  serve().catch((error: unknown) => {
    response.writeHead(500).end(String(error));
  });
});
server.listen(order.port, '127.0.0.1', () => process.send?.('ready'));
// An orphan must not outlive its run.
process.on('disconnect', () => process.exit());
