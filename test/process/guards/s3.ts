/** One text in S3, for workers: through the guard, and as the same program would write it without one. */
import { s3Fence } from '../../../src/guard/s3.js';
import { openS3 } from '../../servers/s3.js';
import type { S3, S3Place } from '../../servers/s3.js';
import type { Connection } from './resource.js';

const NAME = 'text';

export function throughS3Guard(place: S3Place): Connection {
  const fence = s3Fence(clientOf(place), place);
  let opened = '';
  return {
    async open(lease) {
      opened = lease.domain;
      return (await fence.open(lease)).status;
    },
    read: async () => new TextDecoder().decode(await fence.read(opened, NAME)),
    write: async (lease, value) => (await fence.run(lease, (data) => data.put(NAME, value))).status,
  };
}

export function pastS3Guard(place: S3Place): Connection {
  const s3 = clientOf(place);
  const where = { Bucket: place.bucket, Key: `${place.prefix}${NAME}` };
  return {
    open: () => Promise.resolve('applied'),
    async read() {
      try {
        return (await (await s3.getObject(where)).Body?.transformToString()) ?? '';
      } catch (error) {
        if (error instanceof Error && error.name === 'NoSuchKey') return '';
        throw error;
      }
    },
    async write(_, value) {
      await s3.putObject({ ...where, Body: value });
      return 'applied';
    },
  };
}

function clientOf({ config }: S3Place): S3 {
  if (openS3 === undefined) throw new Error('the client of S3 is missing: npm ci --prefix test/servers');
  return openS3(config);
}
