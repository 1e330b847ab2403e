/**
 * A small store behind HTTP, in a process of its own: balances in LevelDB. `/guarded/…` compares tokens, `/plain/…` does
 * what most services do with the token of a lock: nothing.
 *
 *     POST /guarded/open    {lease}                  raise the fence, then read
 *     POST /guarded/write   {lease, key, value}
 *     POST /plain/write     {key, value}
 *     GET  /KEY
 */
import { createServer } from 'node:http';
import { Level } from 'level';
import { levelFence } from 'fencepost/guard/leveldb';

const [directory = ''] = process.argv.slice(2);
/** @type {Level<string, string>} */
const db = new Level(directory);
await db.open();
const fence = levelFence(db);

/**
 * @param {string} method
 * @param {string} path
 * @param {any} body
 */
async function answer(method, path, body) {
  if (method === 'GET') return { value: (await db.get(path.slice(1))) ?? null };
  // A token is text in JSON: it has more digits than some parsers keep.
  const lease = body.lease === undefined ? undefined : { ...body.lease, token: BigInt(body.lease.token) };
  switch (path) {
    case '/guarded/open':
      return fence.open(lease);
    case '/guarded/write':
      return fence.run(lease, (data) => {
        data.put(body.key, body.value);
      });
    case '/plain/write':
      await db.put(body.key, body.value, { sync: true });
      return { status: 'applied' };
    default:
      return { status: 'unknown path' };
  }
}

const server = createServer((request, response) => {
  void (async () => {
    let text = '';
    for await (const chunk of request) text += chunk;
    const said = await answer(request.method ?? '', request.url ?? '', text === '' ? {} : JSON.parse(text));
    const json = JSON.stringify(said, (_, value) => (typeof value === 'bigint' ? value.toString() : value));
    response.setHeader('content-type', 'application/json').end(json);
  })().catch((error) => {
    response.writeHead(500).end(JSON.stringify({ status: 'failed', message: String(error) }));
  });
});
server.listen(0, '127.0.0.1', () => {
  const address = server.address();
  process.send?.({ type: 'listening', port: typeof address === 'object' ? address?.port : undefined });
});
process.on('disconnect', () => process.exit());
