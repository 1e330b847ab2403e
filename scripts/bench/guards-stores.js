/**
 * The part of `guards.js` on stores without transactions over many requests. Each writer has a domain of its own, because the
 * writers of one domain meet at its fence. DynamoDB Local and a fake of S3 count requests and their work on this machine; of what
 * the services cost and take, which is networks, disks and a bill, they say nothing.
 */
import { runnerImport } from 'vite';
import { dynamoFence } from '../../dist/guard/dynamodb.js';
import { s3Fence } from '../../dist/guard/s3.js';

/** @typedef {import('../../dist/guard/dynamodb.js').FencedLease} FencedLease */
/** @typedef {import('./guards.js').Opened} Opened */

/**
 * @param {FencedLease} lease
 * @returns {Promise<Opened>}
 */
export async function dynamoWays(lease) {
  /** @type {{ module: any }} */
  const { module } = await runnerImport('./test/servers/dynamodb.ts');
  const server = await module.DynamoServer.start();
  const db = module.openDynamo(server.url);
  await module.createTable(db, 'fences', 'domain');
  await module.createTable(db, 'account', 'id');
  const fence = dynamoFence(db, { table: 'fences' });
  const add = (/** @type {number} */ id) => ({
    TableName: 'account',
    Key: { id: { S: String(id) } },
    UpdateExpression: 'ADD balance :one',
    ExpressionAttributeValues: { ':one': { N: '1' } },
  });
  /** @type {import('./guards.js').Ways} */
  const ways = {
    'plain update': (id) => db.updateItem(add(id)),
    'plain update in a transaction': (id) => db.transactWriteItems({ TransactItems: [{ Update: add(id) }] }),
    'fenced update': (id) =>
      fence.run({ ...lease, domain: `bench/${id}` }, (data) => {
        data.write({ Update: add(id) });
      }),
  };
  const bases = { 'cost against plain': 'plain update', 'against a transaction': 'plain update in a transaction' };
  return {
    subjects: [{ name: 'DynamoDB Local', ways, bases }],
    async close() {
      db.destroy();
      await server[Symbol.asyncDispose]();
    },
  };
}

/**
 * @param {FencedLease} lease
 * @returns {Promise<Opened>}
 */
export async function s3Ways(lease) {
  /** @type {{ module: any }} */
  const { module } = await runnerImport('./test/servers/s3.ts');
  if (module.openS3 === undefined) throw new Error('S3: npm ci --prefix test/servers');
  const store = await module.S3_STORES[0].start();
  const { config, bucket, prefix } = store.place();
  const s3 = module.openS3(config);
  const fence = s3Fence(s3, { bucket, prefix });
  const body = JSON.stringify({ balance: 1 });
  /** @type {import('./guards.js').Ways} */
  const ways = {
    'plain put': (id) => s3.putObject({ Bucket: bucket, Key: `${prefix}plain/${id}`, Body: body }),
    'fenced put': (id) => fence.run({ ...lease, domain: `bench/${id}` }, (data) => data.put('account', body)),
  };
  return {
    subjects: [{ name: 'S3, a fake', ways, bases: { 'cost against plain': 'plain put' } }],
    async close() {
      s3.destroy();
      await store[Symbol.asyncDispose]();
    },
  };
}
