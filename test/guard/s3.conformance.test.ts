/** Through the real client, on each store of `test/servers/s3.ts`. */
import { afterAll, beforeAll, describe } from 'vitest';
import { s3Fence } from '../../src/guard/s3.js';
import type { FencedLease, S3Client, S3Outcome, S3Work } from '../../src/guard/s3.js';
import type { Between, GuardedStore, GuardSubject } from '../../src/guard/conformance/index.js';
import { openS3, S3_STORES } from '../servers/s3.js';
import type { S3, S3Place } from '../servers/s3.js';
import { builtModule, killedInside } from './killed.js';
import { describeConformance } from './suite.js';

/** Each is a hundred requests, of a client that signs and checks every one. */
const ROUNDS = 200;

function put(item: string, value: string, between?: Between): S3Work<void> {
  return async (data) => {
    await between?.();
    await data.put(item, value);
  };
}

/** The next object that is put over another one is put, and the answer does not arrive. */
function losing(s3: S3): S3Client {
  let isLost = false;
  return {
    getObject: (input) => s3.getObject(input),
    deleteObject: (input) => s3.deleteObject(input),
    async putObject(input) {
      await s3.putObject(input);
      if (isLost || input.IfMatch === undefined || input.Key.endsWith('probe')) return;
      isLost = true;
      throw Object.assign(new Error('read ECONNRESET'), { code: 'ECONNRESET' });
    },
  };
}

function create(open: NonNullable<typeof openS3>, { config, bucket, prefix }: S3Place): GuardedStore {
  let s3 = open(config);
  let fence = s3Fence(s3, { bucket, prefix });
  const write = (lease: FencedLease, item: string, value: string, between?: Between): Promise<S3Outcome<void>> =>
    fence.run(lease, put(item, value, between));
  return {
    async open(lease) {
      const opened = await fence.open(lease);
      if (opened.status !== 'applied') return opened;
      return { ...opened, value: { write: (...args) => opened.value.run(put(...args)) } };
    },
    write,
    async read(domain, item) {
      const body = await fence.read(domain, item);
      return body && new TextDecoder().decode(body);
    },
    close() {
      s3.destroy();
      return Promise.resolve();
    },
    remove: (lease, item) =>
      fence.run(lease, (data) => {
        data.delete(item);
      }),
    async writeAndCrash(lease, item, value) {
      const script = `
        import { writeSync } from 'node:fs';
        import { createRequire } from 'node:module';
        import { resolve } from 'node:path';
        import { s3Fence } from '${builtModule('guard/s3.js')}';
        const [place, lease, item, value] = process.argv.slice(1);
        const { config, ...where } = JSON.parse(place);
        const { S3 } = createRequire(resolve('test/servers/package.json'))('@aws-sdk/client-s3');
        const { token, ...rest } = JSON.parse(lease);
        await s3Fence(new S3(config), where).run({ ...rest, token: BigInt(token) }, async (data) => {
          await data.put(item, value);
          writeSync(1, 'checked');
          Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0);
        });`;
      const text = JSON.stringify({ ...lease, token: lease.token.toString() });
      await killedInside(script, JSON.stringify({ config, bucket, prefix }), text, item, value);
    },
    writeLosingResponse: (lease, item, value) => s3Fence(losing(s3), { bucket, prefix }).run(lease, put(item, value)),
    restart() {
      s3.destroy();
      s3 = open(config);
      fence = s3Fence(s3, { bucket, prefix });
      return Promise.resolve();
    },
    maxJump: 631_152_000_000_000n,
    reset: (lease) => fence.reset(lease),
    async allowIssuer(domain, cluster) {
      await fence.allowIssuer(domain, cluster);
    },
  };
}

describe.each(S3_STORES)('$name', ({ start }) => {
  const open = openS3;
  describe.skipIf(open === undefined)('s3Fence (npm ci --prefix test/servers)', () => {
    let store: Awaited<ReturnType<typeof start>>;
    beforeAll(async () => {
      store = await start();
    });
    afterAll(() => store[Symbol.asyncDispose]());
    const subject: GuardSubject = {
      name: 'S3',
      create() {
        if (open === undefined) throw new Error('the client of S3 is missing');
        return Promise.resolve(create(open, store.place()));
      },
      skips: {
        'several domains in one mutation': 'S3 replaces one object at a time',
        'passage of time': 'S3 removes nothing by itself, unless a lifecycle rule has it do so',
        'write without a lease': 'S3 compares no tokens: whoever may write there can go past the guard',
      },
    };
    describeConformance(subject, { rounds: ROUNDS });
  });
});
