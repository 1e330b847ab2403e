/**
 * The small server in front of a store that one process owns.
 *
 *     POST /open               {lease}
 *     POST /write              {lease, value}
 *     POST /write-unguarded    {value}
 *     GET  /
 */
import { createServer } from 'node:http';
import type { FencedLease } from '../../../src/guard/types.js';
import { orderOf } from '../chaos/orders.js';
import { STORES } from './stores.js';
import type { StoreKind } from './stores.js';

/** What the server is started with. */
export interface ServerOrder {
  readonly kind: StoreKind;
  /** The package whose guard it uses. */
  readonly package: string;
  readonly directory: string;
  readonly port: number;
}

const order = orderOf() as ServerOrder;
const store = await STORES[order.kind](order.package, order.directory);

interface Body {
  readonly lease: Record<'domain' | 'token' | 'cluster' | 'incarnation', string>;
  readonly value: string;
}

async function answer(path: string, { lease: text, value }: Body): Promise<{ readonly status: string }> {
  const lease: FencedLease = { ...text, token: BigInt(text.token) };
  switch (path) {
    case '/open':
      return store.open(lease);
    case '/write':
      return store.write(lease, value);
    case '/write-unguarded':
      await store.writeUnguarded(value);
      return { status: 'applied' };
    default:
      throw new Error(`no such path: ${path}`);
  }
}

const server = createServer((request, response) => {
  const serve = async (): Promise<void> => {
    if (request.method === 'GET') {
      response.end(await store.read());
      return;
    }
    let text = '';
    for await (const chunk of request) text += String(chunk);
    const { status } = await answer(request.url ?? '', JSON.parse(text) as Body);
    response.end(JSON.stringify({ status }));
  };
  serve().catch((error: unknown) => {
    response.writeHead(500).end(String(error));
  });
});
server.listen(order.port, '127.0.0.1', () => process.send?.('ready'));
// An orphan must not outlive its test.
process.on('disconnect', () => process.exit());
