/** On DynamoDB Local, through the real client. */
import { afterAll, beforeAll, describe } from 'vitest';
import type { DynamoFence, FencedLease, FencedWrites } from '../../src/guard/dynamodb.js';
import type { Between, GuardedStore, GuardSubject } from '../../src/guard/conformance/index.js';
import { DYNAMODB, DynamoServer, openDynamo } from '../servers/dynamodb.js';
import type { DynamoDB, TransactWriteItem } from '../servers/dynamodb.js';
import { FencedTables } from './dynamodb-tables.js';
import { builtModule, killedInside } from './killed.js';
import { describeConformance } from './suite.js';

/** Each is some twenty requests, which DynamoDB Local answers slowly: all of the kit's rounds in CI only. */
const OPTIONS = process.env['CI'] === 'true' ? {} : { rounds: 200 };

async function create(server: DynamoServer): Promise<GuardedStore> {
  const tables = await FencedTables.create(server.url);
  let { db } = tables;
  let fence = tables.fence(db);
  type Work = (data: FencedWrites<TransactWriteItem>) => Promise<void>;
  const put =
    (leases: readonly FencedLease[], item: string, value: string, between?: Between): Work =>
    async (data) => {
      await between?.();
      for (const { domain } of leases) data.write(tables.put(domain, item, value));
    };
  /** The transaction is carried out, and its answer does not arrive. */
  const losing = (): DynamoFence<TransactWriteItem> => {
    const transactWriteItems = async (input: Parameters<DynamoDB['transactWriteItems']>[0]): Promise<never> => {
      await db.transactWriteItems(input);
      throw Object.assign(new Error('read ECONNRESET'), { code: 'ECONNRESET' });
    };
    return tables.fence({ getItem: db.getItem.bind(db), transactWriteItems });
  };
  return {
    async open(lease) {
      const opened = await fence.open(lease);
      if (opened.status !== 'applied') return opened;
      return { ...opened, value: { write: (...args) => opened.value.run(put([lease], ...args)) } };
    },
    write: (lease, item, value, between) => fence.run(lease, put([lease], item, value, between)),
    read: (domain, item) => tables.read(domain, item),
    close() {
      db.destroy();
      return Promise.resolve();
    },
    remove: (lease, item) =>
      fence.run(lease, (data) => {
        data.write(tables.remove(lease.domain, item));
      }),
    writeAll: (leases, item, value) => fence.run(leases, put(leases, item, value)),
    async writeAndCrash(lease, item, value) {
      const script = `
        import { writeSync } from 'node:fs';
        import { createRequire } from 'node:module';
        import { resolve } from 'node:path';
        import { dynamoFence } from '${builtModule('guard/dynamodb.js')}';
        const [endpoint, table, lease, write] = process.argv.slice(1);
        const { DynamoDB } = createRequire(resolve('test/servers/package.json'))('@aws-sdk/client-dynamodb');
        const client = new DynamoDB({ endpoint, region: 'local', credentials: { accessKeyId: 'a', secretAccessKey: 'a' } });
        const { token, ...rest } = JSON.parse(lease);
        await dynamoFence(client, { table }).run({ ...rest, token: BigInt(token) }, (data) => {
          data.write(JSON.parse(write));
          writeSync(1, 'checked');
          Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0);
        });`;
      const text = JSON.stringify({ ...lease, token: lease.token.toString() });
      const write = JSON.stringify(tables.put(lease.domain, item, value));
      await killedInside(script, server.url, tables.fences, text, write);
    },
    // The fence is raised before, so that the answer that is lost is the one of the write.
    async writeLosingResponse(lease, item, value) {
      await fence.open(lease);
      return losing().run(lease, put([lease], item, value));
    },
    restart() {
      db.destroy();
      db = openDynamo(server.url);
      fence = tables.fence(db);
      return Promise.resolve();
    },
    maxJump: 631_152_000_000_000n,
    reset: (lease) => fence.reset(lease),
    async allowIssuer(domain, cluster) {
      await fence.allowIssuer(domain, cluster);
    },
  };
}

describe.skipIf(!DYNAMODB.isHere)(DYNAMODB.name, () => {
  let server: DynamoServer;
  beforeAll(async () => {
    server = await DynamoServer.start();
  }, 120_000);
  afterAll(() => server[Symbol.asyncDispose]());
  const subject: GuardSubject = {
    name: 'DynamoDB',
    create: () => create(server),
    skips: {
      'passage of time': 'a TTL is set for each table, and that of the fences has none',
      'write without a lease': 'a table has no condition of its own: whoever may write there can go past the guard',
    },
  };
  describeConformance(subject, OPTIONS);
});
