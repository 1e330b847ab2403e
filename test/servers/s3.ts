/**
 * Stores with the interface of S3 for tests, each reached through the real client: the fake of this folder, always; and a real
 * endpoint where the environment names one, with a bucket that tests may write to:
 *
 *     FENCEPOST_TEST_S3_ENDPOINT    https://s3.eu-central-1.amazonaws.com
 *     FENCEPOST_TEST_S3_BUCKET      my-tests
 *     AWS_REGION, AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY, AWS_SESSION_TOKEN   as for every AWS client
 */
import { randomUUID } from 'node:crypto';
import { createRequire } from 'node:module';
import { resolve } from 'node:path';
import type * as sdk from '@aws-sdk/client-s3';
import { S3Fake } from './s3-fake.js';

export type { S3 } from '@aws-sdk/client-s3';

/** How a client finds its store; JSON. */
export interface S3Place {
  readonly config: sdk.S3ClientConfig;
  readonly bucket: string;
  /** Of its own, so that nothing is there. */
  readonly prefix: string;
}

/** A store that tests run on. */
export interface S3Kind {
  readonly name: string;
  readonly start: () => Promise<AsyncDisposable & { readonly place: () => S3Place }>;
}

const { FENCEPOST_TEST_S3_ENDPOINT: ENDPOINT, FENCEPOST_TEST_S3_BUCKET: BUCKET = '' } = process.env;
/** Also for programs that are bundled elsewhere; tests run in the root. */
const require = createRequire(resolve('test/servers/package.json'));

/** A client of the store, the real one. Undefined when it is not installed: `npm ci --prefix test/servers`. */
export const openS3: ((config: sdk.S3ClientConfig) => sdk.S3) | undefined = opener();

/** The fake first; a real one only where it is named, for nothing that is not there could be skipped. */
export const S3_STORES: readonly S3Kind[] = [
  { name: 'S3, a fake', start: startFake },
  ...(ENDPOINT === undefined ? [] : [{ name: `S3 at ${ENDPOINT}`, start: () => Promise.resolve(named(ENDPOINT)) }]),
];

/** For the fake at this address. */
export function fakePlace(url: string): S3Place {
  const credentials = { accessKeyId: 'test', secretAccessKey: 'test' };
  const config = { endpoint: url, region: 'us-east-1', forcePathStyle: true, credentials };
  return { config, bucket: S3Fake.BUCKET, prefix: `${randomUUID()}/` };
}

async function startFake(): Promise<AsyncDisposable & { readonly place: () => S3Place }> {
  const fake = await S3Fake.start();
  return { place: () => fakePlace(fake.url), [Symbol.asyncDispose]: () => fake[Symbol.asyncDispose]() };
}

function named(endpoint: string): AsyncDisposable & { readonly place: () => S3Place } {
  return {
    place: () => ({
      config: { endpoint, forcePathStyle: true },
      bucket: BUCKET,
      prefix: `fencepost-test/${randomUUID()}/`,
    }),
    [Symbol.asyncDispose]: () => Promise.resolve(),
  };
}

function opener(): ((config: sdk.S3ClientConfig) => sdk.S3) | undefined {
  try {
    const { S3 } = require('@aws-sdk/client-s3') as typeof sdk;
    return (config) => new S3(config);
  } catch {
    return undefined;
  }
}
