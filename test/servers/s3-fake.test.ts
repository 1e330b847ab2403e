/** The fake does what S3's documentation says of objects and of conditional writes, seen through the real client. */
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { S3Fake } from './s3-fake.js';
import { fakePlace, openS3 } from './s3.js';
import type { S3 } from './s3.js';

describe.skipIf(openS3 === undefined)('the fake of S3 (npm ci --prefix test/servers)', () => {
  let fake: S3Fake;
  let s3: S3;
  const at = (Key: string) => ({ Bucket: S3Fake.BUCKET, Key });
  const put = async (key: string, body: string, condition: { IfMatch?: string; IfNoneMatch?: string } = {}) => {
    const { ETag } = await s3.putObject({ ...at(key), Body: body, ...condition });
    return ETag ?? '';
  };
  const get = async (key: string) => (await s3.getObject(at(key))).Body?.transformToString();
  const refused = (name: string, httpStatusCode: number) => ({
    name,
    $metadata: expect.objectContaining({ httpStatusCode }) as unknown,
  });

  beforeAll(async () => {
    fake = await S3Fake.start();
    const { config } = fakePlace(fake.url);
    if (openS3 !== undefined) s3 = openS3(config);
  });
  beforeEach(() => {
    fake.onRequest = undefined;
    for (const key of fake.keys) fake.set(key, undefined);
  });
  afterAll(async () => {
    s3.destroy();
    await fake[Symbol.asyncDispose]();
  });

  it('keeps objects by their keys, with an ETag of the content', async () => {
    const first = await put('a/b #+.json', 'one');
    expect(await get('a/b #+.json')).toBe('one');
    expect((await s3.headObject(at('a/b #+.json'))).ETag).toBe(first);
    expect(await put('a/b #+.json', 'two')).not.toBe(first);
    expect(await put('other', 'one')).toBe(first);
    expect(fake.keys).toEqual(['a/b #+.json', 'other']);
    await s3.deleteObject(at('other'));
    await s3.deleteObject(at('other'));
    await expect(get('other')).rejects.toMatchObject(refused('NoSuchKey', 404));
    await expect(s3.headObject(at('other'))).rejects.toMatchObject(refused('NotFound', 404));
    await expect(s3.getObject({ Bucket: 'none', Key: 'a' })).rejects.toMatchObject(refused('NoSuchBucket', 404));
  });

  it('If-None-Match: * puts where there is nothing; otherwise 412', async () => {
    await put('key', 'one', { IfNoneMatch: '*' });
    await expect(put('key', 'two', { IfNoneMatch: '*' })).rejects.toMatchObject(refused('PreconditionFailed', 412));
    expect(await get('key')).toBe('one');
    await s3.deleteObject(at('key'));
    await put('key', 'three', { IfNoneMatch: '*' });
  });

  it('If-Match puts over this very content; 412 over another, 404 over none', async () => {
    const one = await put('key', 'one');
    const two = await put('key', 'two', { IfMatch: one });
    await expect(put('key', 'three', { IfMatch: one })).rejects.toMatchObject(refused('PreconditionFailed', 412));
    expect(await get('key')).toBe('two');
    await s3.deleteObject(at('key'));
    await expect(put('key', 'three', { IfMatch: two })).rejects.toMatchObject(refused('NoSuchKey', 404));
    expect(fake.keys).toEqual([]);
  });

  it('If-Match deletes this very content only, and reads it only', async () => {
    const one = await put('key', 'one');
    await put('key', 'two');
    await expect(s3.deleteObject({ ...at('key'), IfMatch: one })).rejects.toMatchObject({ name: 'PreconditionFailed' });
    await expect(s3.getObject({ ...at('key'), IfMatch: one })).rejects.toMatchObject({ name: 'PreconditionFailed' });
    expect(await get('key')).toBe('two');
  });

  it('makes a conflict of two requests: 409, the effect there or not', async () => {
    for (const fate of ['conflict', 'conflict after'] as const) {
      fake.onRequest = () => fate;
      const conflict = refused('ConditionalRequestConflict', 409);
      await expect(put(fate, 'one', { IfNoneMatch: '*' })).rejects.toMatchObject(conflict);
    }
    expect(fake.keys).toEqual(['conflict after']);
  });

  it('loses an answer before or after the effect: the client repeats the request, and may meet itself', async () => {
    for (const fate of ['lose before', 'lose after'] as const) {
      const fates = [fate];
      fake.onRequest = () => fates.pop();
      const written = put(fate, 'one', { IfNoneMatch: '*' });
      if (fate === 'lose before') await written;
      else await expect(written).rejects.toMatchObject(refused('PreconditionFailed', 412));
    }
    expect(fake.keys).toEqual(['lose after', 'lose before']);
  });
});
