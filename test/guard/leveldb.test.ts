import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { ClassicLevel } from 'classic-level';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { levelFence } from '../../src/guard/leveldb.js';
import type { FencedLease, LevelFence } from '../../src/guard/leveldb.js';
import { builtModule, killedInside } from './killed.js';

const PROD = { cluster: 'prod', incarnation: 'a'.repeat(32) };
const RESTORED = { cluster: 'prod', incarnation: 'b'.repeat(32) };

const lease = (token: number | bigint, more: Partial<FencedLease> = {}): FencedLease => ({
  domain: 'orders/eu',
  token: BigInt(token),
  ...PROD,
  ...more,
});

let directory: string;
let db: ClassicLevel;
let fence: LevelFence<string, string>;

beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), 'fencepost-guard-'));
  await reopen();
});
afterEach(async () => {
  await db.close();
  await rm(directory, { recursive: true, force: true });
});

async function reopen(): Promise<void> {
  if ((db as ClassicLevel | undefined)?.status === 'open') await db.close();
  db = new ClassicLevel(directory);
  await db.open();
  fence = levelFence(db);
}

const put = (of: FencedLease, value: string, key = 'x') =>
  fence.run(of, (data) => {
    data.put(key, value);
  });

describe('order', () => {
  test('the first write of a domain sets the fence, and survives a reopening', async () => {
    expect(await put(lease(5), 'first')).toEqual({
      status: 'applied',
      value: undefined,
      earlierIncarnation: undefined,
    });
    await reopen();
    expect(await db.get('x')).toBe('first');
    expect(await fence.fence('orders/eu')).toEqual({
      token: 5n,
      issuer: 'fencepost:prod',
      incarnation: PROD.incarnation,
    });
  });

  test('the equal token passes again and again, the greater one too', async () => {
    for (const value of ['a', 'b', 'c']) expect((await put(lease(5), value)).status).toBe('applied');
    expect((await put(lease(6), 'd')).status).toBe('applied');
    expect(await db.get('x')).toBe('d');
    expect((await fence.fence('orders/eu'))?.token).toBe(6n);
  });

  test('a lower token is stale: its work is not even called, and nothing changes', async () => {
    await put(lease(6), 'mine');
    let called = false;
    const outcome = await fence.run(lease(5), () => {
      called = true;
    });
    expect(outcome).toEqual({ status: 'stale', fence: 6n });
    expect(called).toBe(false);
    expect(await db.get('x')).toBe('mine');
    expect((await fence.fence('orders/eu'))?.token).toBe(6n);
  });

  test('stale after the data was deleted, and after it was created anew', async () => {
    await put(lease(6), 'mine');
    await fence.run(lease(6), (data) => {
      data.del('x');
    });
    expect(await db.get('x')).toBeUndefined();
    expect((await put(lease(5), 'late')).status).toBe('stale');
    await put(lease(6), 'again');
    expect((await put(lease(5), 'late')).status).toBe('stale');
    expect(await db.get('x')).toBe('again');
  });

  test('two domains have two fences', async () => {
    await put(lease(9), 'a', 'a');
    expect((await put(lease(5, { domain: 'orders/us' }), 'b', 'b')).status).toBe('applied');
    expect((await put(lease(8), 'c', 'a')).status).toBe('stale');
    expect((await put(lease(4, { domain: 'orders/us' }), 'd', 'b')).status).toBe('stale');
  });

  test.each([
    ['2^53', 2n ** 53n],
    ['2^63', 2n ** 63n - 2n],
  ])('all bits count: around %s', async (_name, token) => {
    await put(lease(token + 1n), 'greater');
    expect(await put(lease(token), 'lower')).toEqual({ status: 'stale', fence: token + 1n });
    await reopen();
    expect((await put(lease(token), 'lower')).status).toBe('stale');
    expect((await put(lease(token + 1n), 'equal')).status).toBe('applied');
  });
});

describe('a tenure', () => {
  test('raises the fence before it reads: a predecessor cannot write any more', async () => {
    await put(lease(5), 'old');
    const opened = await fence.open(lease(6));
    if (opened.status !== 'applied') throw new Error(opened.status);
    expect((await put(lease(5), 'late')).status).toBe('stale');
    const done = await opened.value.run(async (data) => {
      data.put('x', `${String(await data.get('x'))} and new`);
    });
    expect(done.status).toBe('applied');
    expect(await db.get('x')).toBe('old and new');
  });

  test('ends when a greater one has opened', async () => {
    const opened = await fence.open(lease(5));
    if (opened.status !== 'applied') throw new Error(opened.status);
    await fence.open(lease(6));
    expect(
      await opened.value.run((data) => {
        data.put('x', 'late');
      }),
    ).toEqual({ status: 'stale', fence: 6n });
    expect(await fence.open(lease(5))).toEqual({ status: 'stale', fence: 6n });
    expect(await db.get('x')).toBeUndefined();
  });
});

describe('issuer and incarnation (S8)', () => {
  test('a greater token of another incarnation is accepted and reported, once', async () => {
    await put(lease(5), 'a');
    expect(await put(lease(6, RESTORED), 'b')).toMatchObject({
      status: 'applied',
      earlierIncarnation: PROD.incarnation,
    });
    expect(await put(lease(6, RESTORED), 'c')).toMatchObject({ status: 'applied', earlierIncarnation: undefined });
    expect((await put(lease(5), 'late')).status).toBe('stale');
  });

  test('the equal token of another incarnation is refused', async () => {
    await put(lease(5), 'a');
    expect(await put(lease(5, RESTORED), 'b')).toMatchObject({ status: 'rejected', reason: 'incarnation' });
    expect(await db.get('x')).toBe('a');
    expect((await put(lease(5), 'c')).status).toBe('applied');
  });

  test('another issuer is refused, whatever its token, until an operator allows it', async () => {
    await put(lease(5), 'a');
    const staging = { cluster: 'staging', incarnation: 'c'.repeat(32) };
    expect(await put(lease(9, staging), 'b')).toMatchObject({ status: 'rejected', reason: 'issuer' });
    expect(await put(lease(1, staging), 'b')).toMatchObject({ status: 'rejected', reason: 'issuer' });
    expect(await fence.allowIssuer('orders/eu', 'staging')).toBe(true);
    expect((await put(lease(4, staging), 'b')).status).toBe('stale');
    expect((await put(lease(9, staging), 'b')).status).toBe('applied');
    expect(await put(lease(10), 'c')).toMatchObject({ status: 'rejected', reason: 'issuer' });
    expect(await fence.allowIssuer('nobody/wrote', 'staging')).toBe(false);
    await expect(fence.allowIssuer('orders/eu', '')).rejects.toThrow('name of a cluster');
  });
});

describe('one step or none', () => {
  test('work that fails writes nothing and raises nothing', async () => {
    await put(lease(5), 'a');
    const failing = fence.run(lease(6), (data) => {
      data.put('x', 'b');
      throw new Error('no paper');
    });
    await expect(failing).rejects.toThrow('no paper');
    expect(await db.get('x')).toBe('a');
    expect((await put(lease(5), 'c')).status).toBe('applied');
  });

  test('fence and data are in one synced batch', async () => {
    const batches: unknown[][] = [];
    const watched = levelFence<string, string>({
      get: (...args: [string]) => db.get(...args),
      batch: (operations, options) => {
        batches.push([operations, options]);
        return Promise.resolve();
      },
    });
    await watched.run(lease(5), (data) => {
      data.put('x', 'a');
      data.del('y');
    });
    const text = { keyEncoding: 'utf8', valueEncoding: 'utf8' };
    expect(batches).toEqual([
      [
        [
          { type: 'put', key: 'x', value: 'a' },
          { type: 'del', key: 'y' },
          { type: 'put', key: '!fencepost!orders/eu', value: expect.any(String) as string, ...text },
        ],
        { sync: true },
      ],
    ]);
  });

  test('a batch that fails leaves the fence as it was', async () => {
    await put(lease(5), 'a');
    const broken = levelFence<string, string>({
      get: (key: string, ...rest: []) => db.get(key, ...rest),
      batch: () => Promise.reject(new Error('disk is gone')),
    });
    await expect(
      broken.run(lease(6), (data) => {
        data.put('x', 'b');
      }),
    ).rejects.toThrow('disk is gone');
    expect((await put(lease(5), 'c')).status).toBe('applied');
  });

  test('a process killed between check and commit: neither fence nor data', async () => {
    await put(lease(5), 'a');
    await db.close();
    const script = `
      import { ClassicLevel } from 'classic-level';
      import { levelFence } from '${builtModule('guard/leveldb.js')}';
      const db = new ClassicLevel(process.argv[1]);
      await db.open();
      const lease = { domain: 'orders/eu', token: 6n, cluster: 'prod', incarnation: '${PROD.incarnation}' };
      await levelFence(db).run(lease, async (data) => {
        data.put('x', 'b');
        process.stdout.write('checked');
        await new Promise(() => setInterval(() => {}, 1000));
      });`;
    await killedInside(script, directory);
    await reopen();
    expect(await db.get('x')).toBe('a');
    expect((await fence.fence('orders/eu'))?.token).toBe(5n);
  });

  test('two holders that race, many times: nothing of the lower token lands after the greater one', async () => {
    // One history of values, appended under the fence; read back, tokens must never go down.
    const append = (token: number) =>
      fence.run(lease(token), async (data) => {
        const before = (await data.get('log')) ?? '';
        await Promise.resolve();
        data.put('log', `${before}${token},`);
      });
    for (let round = 0; round < 40; round++) {
      const [low, high] = [100 + 2 * round, 101 + 2 * round];
      const outcomes = await Promise.all([append(low), append(high), append(low), append(high), append(low)]);
      expect(outcomes.map(({ status }) => status)).toEqual(['applied', 'applied', 'stale', 'applied', 'stale']);
    }
    const tokens = ((await db.get('log')) ?? '')
      .split(',')
      .filter((text) => text !== '')
      .map(Number);
    expect(tokens).toHaveLength(120);
    expect(tokens).toEqual([...tokens].sort((a, b) => a - b));
  });

  test('two guards over one database, and over one sublevel opened twice, share the order', async () => {
    for (const [first, second] of [
      [levelFence(db), levelFence(db)],
      [levelFence(db.sublevel('s')), levelFence(db.sublevel('s'))],
    ] as const) {
      const slow = first.run(lease(5), async (data) => {
        await new Promise((resolve) => setImmediate(resolve));
        data.put('x', 'slow');
      });
      const quick = second.run(lease(6), async (data) => {
        data.put('x', `${String(await data.get('x'))}, then quick`);
      });
      expect([(await slow).status, (await quick).status]).toEqual(['applied', 'applied']);
      expect((await first.fence('orders/eu'))?.token).toBe(6n);
    }
    expect(await db.get('x')).toBe('slow, then quick');
    expect(await db.sublevel('s').get('x')).toBe('slow, then quick');
  });
});

describe('several domains in one operation', () => {
  const both = (eu: number, us: number) => [lease(eu), lease(us, { domain: 'orders/us' })];

  test('all fences are checked and raised, or none', async () => {
    const move = (eu: number, us: number, value: string) =>
      fence.run(both(eu, us), (data) => {
        data.put('eu', value);
        data.put('us', value);
      });
    expect((await move(5, 7, 'a')).status).toBe('applied');
    expect(await move(6, 6, 'b')).toEqual({ status: 'stale', fence: 7n });
    expect(await move(4, 8, 'c')).toEqual({ status: 'stale', fence: 5n });
    expect((await fence.fence('orders/eu'))?.token).toBe(5n);
    expect((await fence.fence('orders/us'))?.token).toBe(7n);
    expect([await db.get('eu'), await db.get('us')]).toEqual(['a', 'a']);
  });

  test('needs leases of different domains, one at least', async () => {
    await expect(fence.run([], () => undefined)).rejects.toThrow('one at least');
    await expect(fence.run([lease(5), lease(6)], () => undefined)).rejects.toThrow('one of each domain');
    await expect(fence.run([lease(5), lease(0, { domain: 'b' })], () => undefined)).rejects.toThrow('(the 2. of 2)');
  });
});

describe('a token that was never granted', () => {
  test('is rejected when it is too far from the fence; a nearer one shuts the domain until an operator resets its fence to the last lease that was', async () => {
    await put(lease(5), 'a');
    const step = 631_152_000_000_000n;
    const far = await put(lease(6n + step, { incarnation: 'made up' }), 'poison');
    expect(far).toMatchObject({ status: 'rejected', reason: 'jump' });
    expect(await db.get('x')).toBe('a');
    await put(lease(5n + step, { incarnation: 'made up' }), 'poison');
    expect((await put(lease(6), 'b')).status).toBe('stale');
    await fence.reset(lease(6));
    expect((await put(lease(5), 'c')).status).toBe('stale');
    expect((await put(lease(6), 'd')).status).toBe('applied');
    expect(await db.get('x')).toBe('d');
    await expect(fence.reset(lease(0))).rejects.toThrow('token');
  });
});

describe('the handle', () => {
  test('is of no use after its run', async () => {
    let kept: { put(key: string, value: string): void; get(key: string): Promise<string | undefined> } | undefined;
    await fence.run(lease(5), (data) => {
      kept = data;
    });
    expect(() => kept?.put('x', 'late')).toThrow('is over');
    await expect(kept?.get('x')).rejects.toThrow('is over');
  });

  test('work that hangs is given up, and does not keep a successor out', async () => {
    const impatient = levelFence(db, { workTimeoutMs: 20 });
    let late: (() => void) | undefined;
    const hanging = impatient.run(lease(5), async (data) => {
      data.put('x', 'hung');
      await new Promise<void>((resolve) => {
        late = resolve;
      });
      data.put('x', 'late');
    });
    const next = impatient.run(lease(6), (data) => {
      data.put('x', 'next');
    });
    await expect(hanging).rejects.toThrow('workTimeoutMs');
    expect((await next).status).toBe('applied');
    late?.();
    expect(await db.get('x')).toBe('next');
    expect(() => levelFence(db, { workTimeoutMs: 0 })).toThrow('workTimeoutMs');
  });

  test('cannot touch the fences', async () => {
    await expect(put(lease(5), 'x', '!fencepost!orders/eu')).rejects.toThrow('keys that begin with');
    const encodings = { keyEncoding: 'view', valueEncoding: 'view' };
    const bytes = new ClassicLevel<Uint8Array, Uint8Array>(join(directory, 'bytes'), encodings);
    await bytes.open();
    const key = new TextEncoder().encode('!fencepost!orders/eu');
    const guarded = levelFence(bytes);
    const attack = guarded.run(lease(5), (data) => {
      data.del(key);
    });
    await expect(attack).rejects.toThrow('keys that begin with');
    const write = (token: number) =>
      guarded.run(lease(token), (data) => {
        data.put(key.slice(3), key);
      });
    expect((await write(5)).status).toBe('applied');
    expect((await write(4)).status).toBe('stale');
    await bytes.close();
  });
});

describe('what is not a lease, or not a fence', () => {
  test('every fault of a lease at once', async () => {
    const bad = { domain: 'a//b', token: 5, cluster: '', incarnation: 7 } as unknown as FencedLease;
    await expect(fence.run(bad, () => undefined)).rejects.toThrow(/domain.*token.*cluster.*incarnation/);
    await expect(fence.open(lease(0))).rejects.toThrow('token');
    await expect(fence.open(lease(2n ** 63n))).rejects.toThrow('token');
  });

  test('the lease of a slot is one, with a fence of its own', async () => {
    expect((await put(lease(6, { domain: 'gpu#0' }), 'a')).status).toBe('applied');
    expect((await put(lease(5, { domain: 'gpu#1' }), 'b')).status).toBe('applied');
    expect((await put(lease(5, { domain: 'gpu#0' }), 'c')).status).toBe('stale');
    await expect(fence.open(lease(5, { domain: 'gpu#01' }))).rejects.toThrow('domain');
  });

  test.each([
    '',
    '{}',
    '{"token":"x","issuer":"fencepost:prod","incarnation":""}',
    '{"token":5,"issuer":"a","incarnation":"b"}',
  ])('a damaged fence lets nothing pass: %s', async (text) => {
    await db.put('!fencepost!orders/eu', text);
    await expect(put(lease(5), 'a')).rejects.toThrow('damaged');
    expect(await db.get('x')).toBeUndefined();
  });
});
