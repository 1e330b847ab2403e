/** S3: workers reach the store themselves, through its real client. */
import { describe, it } from 'vitest';
import { s3Fence } from '../../../src/guard/s3.js';
import { openS3, S3_STORES } from '../../servers/s3.js';
import type { S3Kind } from '../../servers/s3.js';
import { describeStaleHolder } from './frame.js';
import type { RunningResource } from './resource.js';
import { pastS3Guard } from './s3.js';

async function startS3(kind: S3Kind, open: NonNullable<typeof openS3>): Promise<RunningResource> {
  const store = await kind.start();
  const place = store.place();
  const client = open(place.config);
  return {
    where: { kind: 's3', place },
    async read() {
      const guarded = await s3Fence(client, place).read('guarded', 'text');
      return guarded === undefined ? pastS3Guard(place).read() : new TextDecoder().decode(guarded);
    },
    async [Symbol.asyncDispose]() {
      client.destroy();
      await store[Symbol.asyncDispose]();
    },
  };
}

const open = openS3;
if (open === undefined) {
  describe('S3', () => {
    it.skip('a worker that was stopped past its TTL (missing: npm ci --prefix test/servers)');
  });
} else {
  for (const kind of S3_STORES) describeStaleHolder(kind.name, () => startS3(kind, open));
}
