/** What is particular to S3: what lies in the bucket, answers that are lost, requests that meet, stores that cannot be guarded. */
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { s3Fence } from '../../src/guard/s3.js';
import type { FencedLease, S3Fence } from '../../src/guard/s3.js';
import { S3Fake } from '../servers/s3-fake.js';
import type { S3Fate, S3Request } from '../servers/s3-fake.js';
import { fakePlace, openS3 } from '../servers/s3.js';
import type { S3 } from '../servers/s3.js';

const INCARNATION = 'a'.repeat(32);
const MANIFEST = 'x/orders!eu.fence/manifest.json';

function leaseOf(token: number, domain = 'orders/eu'): FencedLease {
  return { domain, token: BigInt(token), cluster: 'test', incarnation: INCARNATION };
}

describe.skipIf(openS3 === undefined)('s3Fence (npm ci --prefix test/servers)', () => {
  let fake: S3Fake;
  let s3: S3;
  let fence: S3Fence;
  const where = { bucket: S3Fake.BUCKET, prefix: 'x/' };
  const put = (token: number, name: string, value: string, by = fence) =>
    by.run(leaseOf(token), (data) => data.put(name, value));
  const text = async (name: string, domain = 'orders/eu') => {
    const body = await fence.read(domain, name);
    return body && new TextDecoder().decode(body);
  };
  /** All keys but that of the probe. */
  const keys = () => fake.keys.filter((key) => key !== 'x/fencepost-probe');
  /** The next replacements of a manifest meet these, one after another. */
  const fates = (...next: (S3Fate | (() => Promise<unknown>) | undefined)[]): void => {
    fake.onRequest = async ({ method, key }: S3Request) => {
      if (method !== 'PUT' || key !== MANIFEST) return undefined;
      const fate = next.shift();
      if (typeof fate !== 'function') return fate;
      const rest = fake.onRequest;
      fake.onRequest = undefined;
      await fate();
      fake.onRequest = rest;
      return undefined;
    };
  };

  beforeAll(async () => {
    fake = await S3Fake.start();
    if (openS3 !== undefined) s3 = openS3(fakePlace(fake.url).config);
  });
  beforeEach(() => {
    fake.onRequest = undefined;
    fake.ignoresConditions = false;
    for (const key of fake.keys) fake.set(key, undefined);
    fence = s3Fence(s3, where);
  });
  afterAll(async () => {
    s3.destroy();
    await fake[Symbol.asyncDispose]();
  });

  describe('in the bucket', () => {
    it('is one manifest for each domain, and each object under a key of its own with the token', async () => {
      await put(5, 'stock', 'one');
      await fence.run(leaseOf(6, '..'), (data) => data.put('stock', 'two'));
      expect(keys()).toEqual([
        expect.stringMatching(/^x\/\.\.\.fence\/6\/[-0-9a-f]{36}$/),
        'x/...fence/manifest.json',
        expect.stringMatching(/^x\/orders!eu\.fence\/5\/[-0-9a-f]{36}$/),
        MANIFEST,
      ]);
      expect([await text('stock'), await text('stock', '..')]).toEqual(['one', 'two']);
    });

    it('is nothing that is named no more: what was replaced, deleted, or put by a run that failed or was stale', async () => {
      await put(6, 'a', '1');
      await put(6, 'a', '2');
      await fence.run(leaseOf(6), async (data) => {
        await data.put('b', '1');
        await data.put('b', '2');
        data.delete('a');
        await data.put('c', '1');
        data.delete('c');
      });
      const left = keys();
      expect(left).toHaveLength(2);
      const failed = fence.run(leaseOf(6), async (data) => {
        await data.put('d', '1');
        throw new Error('no');
      });
      await expect(failed).rejects.toThrow('no');
      fates(() => fence.open(leaseOf(8)));
      expect(await put(7, 'e', '1')).toEqual({ status: 'stale', fence: 8n });
      expect(keys()).toEqual(left);
      expect(await text('b')).toBe('2');
    });

    it('is nothing new after a run that only read', async () => {
      await put(5, '__proto__', 'kept');
      fake.onRequest = ({ method }) => (method === 'GET' ? undefined : 'deny');
      const read = await fence.run(leaseOf(5), async (data) => [data.names(), await data.get('__proto__')]);
      expect(read).toMatchObject({ status: 'applied', value: [['__proto__'], new TextEncoder().encode('kept')] });
    });
  });

  describe('a run', () => {
    it('sees what it has put, and is waited for by what it did not wait for', async () => {
      const seen = await fence.run(leaseOf(5), (data) => {
        data.put('a', 'one').catch(() => undefined);
        return data.get('a');
      });
      expect(seen).toMatchObject({ value: new TextEncoder().encode('one') });
      fake.onRequest = ({ key }) => (key.includes('/5/') ? 'deny' : undefined);
      const forgotten = fence.run(leaseOf(5), (data) => {
        data.put('b', 'two').catch(() => undefined);
      });
      await expect(forgotten).rejects.toMatchObject({ name: 'AccessDenied' });
    });

    it('of two first ones at once, one is run again', async () => {
      fake.set(MANIFEST, undefined);
      fates(() => put(5, 'other', 'first'));
      expect(await put(5, 'mine', 'second')).toMatchObject({ status: 'applied' });
      expect([await text('mine'), await text('other')]).toEqual(['second', 'first']);
    });

    it('leaves nothing behind of what it put and took back', async () => {
      await put(5, 'a', 'kept');
      const before = keys();
      const back = await fence.run(leaseOf(5), async (data) => {
        await data.put('b', 'no');
        data.delete('b');
      });
      expect([back.status, keys()]).toEqual(['applied', before]);
    });

    it('is over when it is over', async () => {
      const out = await fence.run(leaseOf(5), (data) => ({ data }));
      if (out.status !== 'applied') throw new Error(out.status);
      const { data } = out.value;
      await expect(data.put('a', 'b')).rejects.toThrow('is over');
      await expect(data.get('a')).rejects.toThrow('is over');
      expect(() => data.names()).toThrow('is over');
      expect(() => {
        data.delete('a');
      }).toThrow('is over');
    });

    it('is run again when another under its token was first, five times at most', async () => {
      let other = 0;
      let calls = 0;
      const first = () => put(5, 'other', String(++other));
      const count = () =>
        fence.run(leaseOf(5), (data) => {
          calls++;
          return data.put('mine', String(calls));
        });
      await fence.open(leaseOf(5));
      fates(first, first);
      expect(await count()).toMatchObject({ status: 'applied' });
      expect([calls, await text('mine'), await text('other')]).toEqual([3, '3', '2']);
      fates(first, first, first, first, first);
      const cause = expect.objectContaining({ name: 'PreconditionFailed' }) as unknown;
      expect(await count()).toEqual({ status: 'retry', attempts: 5, cause });
      expect([calls, await text('mine')]).toEqual([8, '3']);
    });
  });

  describe('an answer', () => {
    let calls: string[] = [];
    const once = (name: string) =>
      fence.run(leaseOf(5), (data) => {
        calls.push(name);
        return data.put(name, 'done');
      });
    beforeEach(async () => {
      await fence.open(leaseOf(5));
      calls = [];
    });

    it('that is lost after the effect: the client repeats the request, is refused, and the guard finds its own write', async () => {
      fates('lose after');
      expect(await once('a')).toMatchObject({ status: 'applied' });
      expect([calls.length, await text('a')]).toEqual([1, 'done']);
    });

    it('that is lost, of the first write of all', async () => {
      fake.set(MANIFEST, undefined);
      fates('lose after');
      expect(await once('a')).toMatchObject({ status: 'applied' });
      expect([calls.length, await text('a')]).toEqual([1, 'done']);
    });

    it('that is lost, and another write came on top before the request was repeated', async () => {
      fates('lose after', () => put(5, 'other', 'on top'));
      expect(await once('a')).toMatchObject({ status: 'applied' });
      expect([calls.length, await text('a'), await text('other')]).toEqual([1, 'done', 'on top']);
    });

    it('that is lost, and so many came on top that nobody can tell: throws, and says so', async () => {
      fates('lose after', async () => {
        for (let at = 0; at < 16; at++) await put(6, 'other', String(at));
      });
      await expect(once('a')).rejects.toThrow('is not known: read it before you do anything again');
      expect(await text('a')).toBe('done');
    });

    it('that is lost each time, without an effect: throws, and says that it does not know', async () => {
      fates('lose before', 'lose before', 'lose before');
      await expect(once('a')).rejects.toThrow('what became of a replacement of the manifest of orders/eu is not known');
      expect(await text('a')).toBeUndefined();
    });

    it('409: the same request is sent again, and takes effect once', async () => {
      fates('conflict', 'conflict');
      expect(await once('a')).toMatchObject({ status: 'applied' });
      fates('conflict after');
      expect(await once('b')).toMatchObject({ status: 'applied' });
      expect([calls, await text('a'), await text('b')]).toEqual([['a', 'b'], 'done', 'done']);
      fates('conflict', 'conflict', 'conflict', 'conflict', 'conflict');
      await expect(once('c')).rejects.toThrow('is not known');
      expect(calls).toEqual(['a', 'b', 'c']);
    });

    it('403 to the repetition of a request whose answer was lost says nothing of the first: throws, and says so', async () => {
      await put(5, 'a', 'b');
      fates('lose after', 'deny');
      // Else the manifest would tell.
      const [replaced] = [fake.onRequest];
      let sent = 0;
      fake.onRequest = async (request) => {
        if (request.method === 'PUT' && request.key === MANIFEST) sent++;
        if (request.method === 'GET' && sent > 0) return 'deny';
        return replaced?.(request);
      };
      await expect(put(5, 'a', 'c')).rejects.toThrow('is not known');
      expect(sent).toBe(2);
      fake.onRequest = undefined;
      expect(await text('a')).toBe('c');
    });

    it('403 is thrown as it is', async () => {
      fates('deny');
      await expect(once('a')).rejects.toMatchObject({ name: 'AccessDenied' });
    });
  });

  describe('refuses', () => {
    it('a store that ignores conditions, before it writes a manifest', async () => {
      fake.ignoresConditions = true;
      await expect(put(5, 'a', 'b')).rejects.toThrow(
        'ignores If-None-Match: * and If-Match when an object is put: it cannot be guarded',
      );
      expect(fake.keys).not.toContain(MANIFEST);
      // Asked again: it may have been set right.
      fake.ignoresConditions = false;
      expect(await put(5, 'a', 'b')).toMatchObject({ status: 'applied' });
    });

    it.each<[string, Record<string, unknown> | string, RegExp]>([
      ['no JSON', 'no', /it is no JSON\./],
      ['no object', 'null', /it is no JSON object\./],
      ['another format', { format: 2 }, /its format is 2, and this guard knows 1 only/],
      ['another domain', { domain: 'orders/us' }, /its domain is "orders\/us"/],
      ['a token that is a number', { token: 5 }, /its token is no integer from 1 to 2\^63 - 1/],
      ['a token of 65 bits', { token: '9223372036854775808' }, /its token is no integer/],
      ['no issuer, no incarnation', { issuer: '', incarnation: 1 }, /it has no issuer; it has no incarnation/],
      ['no writes', { writes: [] }, /it has no list of writes/],
      ['objects without keys', { objects: [['a']] }, /it has no list of objects/],
      ['an object twice', { objects: [['a', 'b'], ['a', 'c']] }, /it names an object twice/], // prettier-ignore
    ])('a manifest that is corrupt, and leaves it alone: %s', async (_, damage, message) => {
      await put(5, 'a', 'b');
      const manifest = Buffer.from(
        (await (await s3.getObject({ Bucket: S3Fake.BUCKET, Key: MANIFEST })).Body?.transformToByteArray()) ?? [],
      ).toString();
      const damaged =
        typeof damage === 'string' ? damage : JSON.stringify({ ...(JSON.parse(manifest) as object), ...damage });
      fake.set(MANIFEST, damaged);
      const before = keys();
      await expect(put(6, 'a', 'c')).rejects.toThrow(message);
      await expect(fence.fence('orders/eu')).rejects.toThrow(`${MANIFEST} is no manifest of orders/eu`);
      expect(keys()).toEqual(before);
    });

    it('to write where the manifest was deleted under its eyes', async () => {
      await put(5, 'a', 'b');
      fates(() => {
        fake.set(MANIFEST, undefined);
        return Promise.resolve();
      });
      await expect(put(6, 'a', 'c')).rejects.toThrow('the manifest of orders/eu was deleted: its fence is gone');
      expect(fake.keys).not.toContain(MANIFEST);
    });

    it('to read an object that was deleted past it; one that was replaced meanwhile it reads anew', async () => {
      await put(5, 'a', 'one');
      let replaced = false;
      fake.onRequest = async ({ method, key }) => {
        if (method !== 'GET' || !key.includes('/5/') || replaced) return undefined;
        replaced = true;
        await put(5, 'a', 'two');
        return undefined;
      };
      expect(await text('a')).toBe('two');
      const once = fake.onRequest;
      fake.onRequest = async ({ method, key }) => {
        if (method !== 'GET' || key === MANIFEST) return undefined;
        const rest = fake.onRequest;
        fake.onRequest = undefined;
        await put(5, 'a', 'two');
        fake.onRequest = rest;
        return undefined;
      };
      await expect(text('a')).rejects.toThrow('a of orders/eu was replaced each of the 5 times');
      fake.onRequest = once;
      replaced = false;
      const seen = await fence.run(leaseOf(5), (data) => data.get('a'));
      expect(seen).toMatchObject({ status: 'applied', value: new TextEncoder().encode('two') });
      for (const key of keys()) if (key !== MANIFEST) fake.set(key, undefined);
      replaced = true;
      await expect(text('a')).rejects.toThrow('the manifest names "a", and its object x/orders!eu.fence/5/');
      await expect(fence.run(leaseOf(5), (data) => data.get('a'))).rejects.toThrow('is not there');
    });

    it('what would make a manifest that it could not read: a name that is no text, and contents that are no bytes', async () => {
      await put(5, 'a', 'b');
      for (const [name, body] of [
        [7, 'x'],
        [undefined, 'x'],
        ['c', undefined],
        ['c', { x: 1 }],
      ])
        // prettier-ignore
        await expect(fence.run(leaseOf(5), (data) => data.put(name as string, body as string))).rejects.toThrow(
          /name must be text|body must be/,
        );
      expect((await fence.fence('orders/eu'))?.token).toBe(5n);
      expect(await text('a')).toBe('b');
    });

    it('leases of two domains: it would check one of them only', async () => {
      await fence.open(leaseOf(6, 'orders/us'));
      const two = [leaseOf(5), leaseOf(5, 'orders/us')] as unknown as FencedLease;
      await expect(fence.run(two, (data) => data.put('a', 'b'))).rejects.toThrow('one lease only');
    });

    it('what is no bucket, no prefix, no lease, no domain, and a bucket that is not there', async () => {
      expect(() => s3Fence(s3, { bucket: '', prefix: '/x' })).toThrow(
        'bucket must be the name of a bucket; prefix must be text that begins with no slash',
      );
      await expect(fence.open({ ...leaseOf(5), token: 0n })).rejects.toThrow('token must be a bigint from 1');
      await expect(fence.reset({ ...leaseOf(5), cluster: '' })).rejects.toThrow('cluster must be');
      await expect(fence.read('a!b', 'c')).rejects.toThrow('domain must be segments');
      await expect(s3Fence(s3, { bucket: 'none' }).fence('a')).rejects.toMatchObject({ name: 'NoSuchBucket' });
      await expect(s3Fence(s3, { bucket: 'none' }).open(leaseOf(5))).rejects.toMatchObject({ name: 'NoSuchBucket' });
    });
  });

  it('shows operators the fence, and that there is none', async () => {
    expect([await fence.fence('orders/eu'), await fence.allowIssuer('orders/eu', 'other')]).toEqual([undefined, false]);
    expect(fake.keys).toEqual([]);
    await put(5, 'a', 'kept');
    expect(await fence.allowIssuer('orders/eu', 'other')).toBe(true);
    expect(await fence.fence('orders/eu')).toEqual({ token: 5n, issuer: 'fencepost:other', incarnation: INCARNATION });
    await fence.reset(leaseOf(4));
    expect(await fence.fence('orders/eu')).toEqual({ token: 4n, issuer: 'fencepost:test', incarnation: INCARNATION });
    expect(await text('a')).toBe('kept');
  });
});
