/** What `fencepost fence doctor` says of fences beside the cluster that granted them. */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { connect } from '../../../src/client/index.js';
import { connect as connectCommand } from '../../../src/cli/connect.js';
import { floorsOf, greatestFloor } from '../../../src/cli/fence/floor.js';
import type { StoredFence } from '../../../src/cli/fence/store.js';
import { sqliteFence } from '../../../src/guard/sqlite.js';
import { startTestServer } from '../../../src/testing/index.js';
import { SQLITE } from '../../servers/sqlite.js';
import type { SqliteConnection } from '../../servers/sqlite.js';
import { HEADER, run } from '../kit.js';
import type { Replies } from '../kit.js';
import { doctor, fence, FOLDER } from './support.js';

const [driver] = SQLITE;

describe('the floor for a cluster that is formed anew', () => {
  const LIMIT = greatestFloor(Date.UTC(2026, 11, 1));
  const of = (token: bigint, issuer?: string): StoredFence => ({
    domain: 'd',
    token,
    issuer,
    incarnation: undefined,
    raisedAt: undefined,
  });

  it.each<[string, readonly StoredFence[], readonly (readonly [string | undefined, bigint])[]]>([
    ['no fence, no floor', [], []],
    ['the greatest', [of(5n, 'fencepost:a'), of(7n, 'fencepost:a'), of(6n, 'fencepost:a')], [['fencepost:a', 7n]]],
    [
      'one for each issuer',
      [of(5n, 'fencepost:a'), of(7n, 'fencepost:b')],
      [
        ['fencepost:a', 5n],
        ['fencepost:b', 7n],
      ],
    ],
    [
      'a fence without issuer counts for each',
      [of(5n, 'fencepost:a'), of(7n, 'fencepost:b'), of(6n)],
      [
        ['fencepost:a', 6n],
        ['fencepost:b', 7n],
      ],
    ],
    ['and for itself where there is no other', [of(6n)], [[undefined, 6n]]],
    ['other coordinators have none', [of(9n, 'etcd:a'), of(5n, 'fencepost:a')], [['fencepost:a', 5n]]],
    ['the last that forming takes, and not the one above', [of(LIMIT), of(LIMIT + 1n)], [[undefined, LIMIT]]],
  ])('%s', (_, fences, expected) => {
    expect(floorsOf(fences, LIMIT).map(({ issuer, floor }) => [issuer, floor])).toEqual(expected);
  });
});

describe.skipIf(driver?.open === undefined)(`doctor with fences through ${driver?.name ?? ''}`, () => {
  let folder: string;
  let at: string;
  let db: SqliteConnection;
  const NOW = BigInt(HEADER.revision);
  const lease = (domain: string, token: bigint, cluster = HEADER.cluster) => ({
    domain,
    token,
    cluster,
    incarnation: 'f',
  });
  const open = (domain: string, token: bigint, cluster?: string): void => {
    expect(sqliteFence(db).open(lease(domain, token, cluster)).status).toBe('applied');
  };
  /** A cluster whose revision is `NOW`. */
  const listing: Replies = () => ({ type: 'list', domains: [], next: '' });

  beforeEach(async () => {
    folder = await mkdtemp(join(tmpdir(), 'fencepost-doctor-'));
    const file = join(folder, 'orders.db');
    const opened = driver?.open?.(file);
    if (opened === undefined) throw new Error('no driver');
    db = opened;
    db.exec('pragma synchronous = full');
    at = `sqlite:${file}`;
  });
  afterEach(async () => {
    db.close();
    await rm(folder, { recursive: true });
  });

  it('asks no cluster unless it is told which', async () => {
    open('orders/eu', NOW + 1n);
    const { code, calls, connects } = await run(`fence doctor --at ${at}`, listing, {
      folder: FOLDER,
      environment: { FENCEPOST_ENDPOINTS: 'a:1' },
    });
    expect({ code, calls, connects }).toEqual({ code: 0, calls: [], connects: [] });
  });

  it('a fence at the revision of the cluster is good, one above it is not; others’ are not compared', async () => {
    open('a', NOW);
    open('b', NOW + 1n);
    open('c', NOW + 2n, 'elsewhere');
    const found = await doctor(at, '--endpoints a:1', listing);
    expect(found).toMatchObject({ code: 1, faults: ['fence-above-cluster b'] });
    expect(found.report).toMatchObject({
      fences: 3,
      cluster: { name: HEADER.cluster, revision: String(NOW) },
      floors: [
        { issuer: 'fencepost:elsewhere', floor: String(NOW + 2n) },
        { issuer: 'fencepost:local', floor: String(NOW + 1n), date: '2026-11-30T00:53:20.000Z' },
      ],
    });
    expect((await fence(`reset b ${NOW} --note undone --at ${at}`)).code).toBe(0);
    expect(await doctor(at, '--endpoints a:1', listing)).toMatchObject({ code: 0, faults: [] });
  });

  it('a token that no cluster can have granted is found without one, said once, and is no floor', async () => {
    open('a', NOW);
    open('b', 2n ** 62n);
    for (const more of ['', '--endpoints a:1'])
      expect(await doctor(at, more, listing)).toMatchObject({
        code: 1,
        faults: ['fence-beyond-floor b'],
        report: { floors: [{ floor: String(NOW) }] },
      });
  });

  it('shows people the same', async () => {
    open('b', NOW + 1n);
    const { code, out } = await fence(`doctor --at ${at} --endpoints a:1`, listing);
    expect(code).toBe(1);
    const lines = out.split('\n');
    expect(lines[0]).toMatch(/^resource {2}SQLite 3/);
    expect(lines.slice(1)).toEqual([
      'fences    1',
      `cluster   local, revision ${NOW} (2026-11-30T00:53:20.000Z)`,
      `floor     ${NOW + 1n} (2026-11-30T00:53:20.000Z), fencepost:local`,
      'found     1',
      '',
      'fence-above-cluster: b',
      expect.stringContaining(`token ${NOW + 1n} (2026-11-30T00:53:20.000Z) is above the revision of cluster local`),
      '',
      'note: no-limit: write lock',
      expect.stringContaining('SQLite has no time-out'),
    ]);
  });

  it('ends as other commands do when the cluster does not answer', async () => {
    open('a', NOW);
    expect(await fence(`doctor --at ${at} --endpoints a:1`)).toMatchObject({
      code: 3,
      out: '',
      err: 'UNREACHABLE: fence: nobody there',
    });
  });

  it('with a real cluster: what it granted is good, what nobody was granted is not', async () => {
    const server = await startTestServer();
    const client = connect({ endpoints: server.endpoints });
    try {
      const real = await client.acquire('orders/eu', { ttlMs: 60_000 });
      expect(sqliteFence(db).open(real).status).toBe('applied');
      const line = `fence doctor --json --at ${at} --endpoints ${server.endpoints.join(',')}`;
      const more = { folder: FOLDER, connect: connectCommand };
      expect((await run(line, undefined, more)).code).toBe(0);
      const forged = {
        ...lease('orders/us', real.token + 3_600_000_000n, real.cluster),
        incarnation: real.incarnation,
      };
      expect(sqliteFence(db).open(forged).status).toBe('applied');
      const found = await run(line, undefined, more);
      expect(found.code).toBe(1);
      expect(JSON.parse(found.out)).toMatchObject({
        findings: [{ code: 'fence-above-cluster', subject: 'orders/us' }, {}],
      });
    } finally {
      await client.close();
      await server.stop();
    }
  });
});
