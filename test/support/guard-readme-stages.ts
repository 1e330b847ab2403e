/** How the code blocks in the README of the guards are run. */

/** What a block runs on, beside Node. */
export type Need = 'dynamodb' | 'mariadb' | 'postgres' | 'redis' | 's3' | 'sqlite';

/** How a block is run: found by what it says, with what stands before it, and what it comes to. */
export interface Stage {
  readonly block: string;
  readonly given: string;
  /** Behind the last statement of the block; what it prints. */
  readonly show: string;
  readonly prints: RegExp;
  readonly needs?: Need;
}

/** A service over gRPC and a client of it, without a proto file. */
const GRPC = `interface Stock { region: string; qty: number }
const encode = (value: object) => Buffer.from(JSON.stringify(value));
const decode = (bytes: Buffer) => JSON.parse(bytes.toString());
const method = (name: string, stream: boolean) => ({
  path: '/orders.Stock/' + name, requestStream: stream, responseStream: stream,
  requestSerialize: encode, requestDeserialize: decode, responseSerialize: encode, responseDeserialize: decode,
});
const server = new Server();
async function listening(service: ServiceDefinition) {
  const plain = ServerCredentials.createInsecure();
  await new Promise((resolve) => { server.bindAsync('127.0.0.1:PORT', plain, resolve); });
  return new (makeClientConstructor(service, 'Stock'))('127.0.0.1:PORT', credentials.createInsecure());
}
import { credentials, makeClientConstructor, Server, ServerCredentials } from '@grpc/grpc-js';
import type { ServiceDefinition } from '@grpc/grpc-js';\n`;
const SKU = "const sku = 'a';\n";

/** One for each block; their order is that of nothing, but the outbox sends what the block before it wrote down. */
export const STAGES: readonly Stage[] = [
  {
    block: "from 'fencepost/guard/leveldb'",
    given: '',
    show: "console.log(done.status, await db.get('stock'));",
    prints: /^applied -1$/,
  },
  {
    block: "from 'fencepost/guard/sqlite'",
    given: `${SKU}new Database('orders.db').exec("create table stock (sku text, qty int); insert into stock values ('a', 10)");\n`,
    show: "console.log(done.status, db.prepare('select qty from stock').get().qty);",
    prints: /^applied 9$/,
    needs: 'sqlite',
  },
  {
    block: 'memoryFence(plotter',
    given:
      'const plotter = { at: 1, position: () => plotter.at, moveTo: (to: number, _: object) => { plotter.at = to; } } as ' +
      '{ at: number; position(): number; moveTo(to: number, options: object): void };\n',
    show: 'console.log(done.status, plotter.at);',
    prints: /^applied 2$/,
  },
  {
    block: 'postgresFence(new pg.Pool(), {',
    given: SKU,
    show: "console.log(done.status, (await new pg.Pool().query('select qty from stock')).rows[0].qty);",
    prints: /^applied 9$/,
    needs: 'postgres',
  },
  {
    block: 'postgresRows(pool',
    given: "import pg from 'pg';\nconst pool = new pg.Pool();\n",
    show: "console.log(paid.status, (await pool.query('select balance from account')).rows[0].balance);",
    prints: /^applied 75$/,
    needs: 'postgres',
  },
  {
    block: 'mysqlFence(mysql.createPool(',
    given: SKU,
    show: "console.log(done.status, JSON.stringify((await mysql.createPool({ database: 'app' }).query('select qty from stock'))[0]));",
    prints: /^applied \[\{"qty":9\}\]$/,
    needs: 'mariadb',
  },
  {
    block: 'mysqlRows(pool',
    given: "import mysql from 'mysql2/promise';\nconst pool = mysql.createPool({ database: 'app' });\n",
    show: "console.log(paid.status, JSON.stringify((await pool.query('select balance from account'))[0]));",
    prints: /^applied \[\{"balance":75\}\]$/,
    needs: 'mariadb',
  },
  {
    block: 'redisFence(redis)',
    given: "await new Redis({ maxRetriesPerRequest: 0 }).set('{orders/eu}:stock', 10);\n",
    show: "console.log(done.status, await redis.get(key), (await redis.lrange('{orders/eu}:log', 0, -1)).join());",
    prints: /^applied 9 took one$/,
    needs: 'redis',
  },
  {
    block: 's3Fence(new S3(',
    given: `const before = s3Fence(new S3({}), { bucket: 'shop', prefix: 'orders/' });
await before.run(lease, async (data) => {
  await data.put('stock.json', '{"qty":10}');
});\n`,
    show: "console.log(done.status, new TextDecoder().decode(await fence.read(lease.domain, 'stock.json')));",
    prints: /^applied \{"qty":9\}$/,
    needs: 's3',
  },
  {
    block: 'dynamoFence(db',
    given: SKU,
    show: "console.log(done.status, (await db.getItem({ TableName: 'stock', Key: { sku: { S: sku } } })).Item?.qty?.N);",
    prints: /^applied 9$/,
    needs: 'dynamodb',
  },
  {
    block: 'expressFencing<',
    given: `const app = express().use(express.json());
const pool = new pg.Pool();
import pg from 'pg';
import { fencedFetch } from 'fencepost/guard/http';
import { postgresFence } from 'fencepost/guard/postgres';\n`,
    show: `await new Promise<void>((resolve) => { app.listen(Number('PORT'), () => { resolve(); }); });
const put = { method: 'PUT', headers: { 'content-type': 'application/json' }, body: '{"qty":4}' };
const done = await fencedFetch(lease)('http://127.0.0.1:PORT/orders/eu', put);
console.log(done.status, (await pool.query('select qty from stock')).rows[0].qty);`,
    prints: /^applied 4$/,
    needs: 'postgres',
  },
  {
    // The service is that of the block before, as far as its client can see.
    block: "send('http://stock/orders/eu/tenure'",
    given: `const headers = { 'content-type': 'application/json' };
const service = createServer((request, response) => {
  console.log(request.method, request.headers['fencing-token']);
  response.setHeader('fencing-outcome', 'applied').end('[{"qty":10}]');
});
await new Promise<void>((resolve) => { service.listen(Number('PORT'), resolve); });
import { createServer } from 'node:http';\n`,
    show: 'console.log(done.status);',
    prints: /^POST "1796000000000040"\nPUT "1796000000000040"\napplied$/,
  },
  {
    block: 'await fencing.admit(request, response)',
    given: `const fencing = nodeFencing({ domains: () => 'orders/eu', guard: memoryFence({}) });
const [request, response] = await new Promise<[IncomingMessage, ServerResponse]>((resolve) => {
  const server = createServer((...both) => { resolve(both); });
  server.listen(Number('PORT'), () => { void fencedFetch(lease)('http://127.0.0.1:PORT/'); });
});
import { createServer } from 'node:http';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { fencedFetch, nodeFencing } from 'fencepost/guard/http';
import { memoryFence } from 'fencepost/guard/memory';\n`,
    show: 'console.log(leases.map(({ domain, token }) => `${domain} ${token}`).join());',
    prints: /^orders\/eu 1796000000000040$/,
  },
  {
    block: 'grpcFencing<ServerUnaryCall',
    given: `${GRPC}const pool = new pg.Pool();
const stockService = { begin: method('begin', false), put: method('put', false) };
import pg from 'pg';
import { fencedCall } from 'fencepost/guard/grpc';
import { postgresFence } from 'fencepost/guard/postgres';\n`,
    show: `const stub = await listening(stockService);
const stale = { ...lease, token: 1n };
for (const each of [stale, lease]) {
  const done = await fencedCall<Stock>(each, (metadata, end) => stub.put({ region: 'eu', qty: 3 }, metadata, end));
  console.log(done.status, (await pool.query('select qty from stock')).rows[0].qty);
}`,
    prints: /^stale 4\napplied 3$/,
    needs: 'postgres',
  },
  {
    block: 'stub.begin({ region }',
    given: `${GRPC}const service = { begin: method('begin', false), put: method('put', false) };
const guard = memoryFence({ region: 'eu', qty: 10 });
const { unary } = grpcFencing<ServerUnaryCall<Stock, Stock>>({ domains: () => 'orders/eu' });
server.addService(service, {
  begin: unary((_, leases) => guard.run(leases, (act) => act((stock) => stock))),
  put: unary(({ request }, leases) => guard.run(leases, (act) => act((stock) => Object.assign(stock, request)))),
});
const stub = await listening(service);
import type { ServerUnaryCall } from '@grpc/grpc-js';
import { grpcFencing } from 'fencepost/guard/grpc';
import { memoryFence } from 'fencepost/guard/memory';\n`,
    show: 'console.log(JSON.stringify(put));',
    prints: /^\{"status":"applied","value":\{"region":"eu","qty":9\}\}$/,
  },
  {
    block: 'call.iterator(',
    given: `${GRPC}const countService = { count: method('count', true) };
const guard = postgresFence(new pg.Pool());
import pg from 'pg';
import { fencingMetadata } from 'fencepost/guard/grpc';
import { postgresFence } from 'fencepost/guard/postgres';\n`,
    show: `const metadata = fencingMetadata(lease);
metadata.set('region', 'eu');
const stub = await listening(countService);
const counting = stub.count(metadata);
counting.write({ region: 'eu', qty: 8 });
counting.end();
for await (const { qty } of counting) console.log(qty);
console.log((await new pg.Pool().query('select qty from stock')).rows[0].qty);`,
    prints: /^8\n8$/,
    needs: 'postgres',
  },
  {
    block: 'await enqueue(',
    given: 'const id = 7;\n',
    show: "console.log(shipped.status, (await new pg.Pool().query('select payload from fencing.outbox')).rows[0].payload.text);",
    prints: /^applied order 7 is on its way$/,
    needs: 'postgres',
  },
  {
    // It runs for as long as it leads: this one ends when the first mail is there. It sends what the block before wrote down.
    block: 'outboxDispatcher(',
    given: `const mailServer = 'MAIL';
const send = fetch;
globalThis.fetch = async (...args) => {
  const answer = await send(...args);
  console.log(answer.status);
  setImmediate(() => process.exit());
  return answer;
};\n`,
    show: '',
    prints: /^200$/,
    needs: 'postgres',
  },
  {
    block: 'createServer(async',
    given: "const port = Number('PORT');\n",
    show: `const body = JSON.stringify({ text: 'one mail' });
for (let at = 0; at < 2; at++) await fetch('http://127.0.0.1:PORT', { method: 'POST', headers: { 'idempotency-key': 'x' }, body });`,
    prints: /^one mail$/,
  },
  // Nothing is there to be checked: the kit's own tests run it.
  { block: 'conformanceCases(subject)', given: '', show: '', prints: /^never$/ },
];
