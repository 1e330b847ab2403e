/** `fencepost fence` on a SQLite file that the guard writes to. */
import { closeSync, existsSync, openSync, writeFileSync, writeSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { sqliteFence } from '../../../src/guard/sqlite.js';
import { SQLITE } from '../../servers/sqlite.js';
import { doctor, fence } from './support.js';

const [driver] = SQLITE;
const TOKEN = 1_796_000_000_000_041n;
const lease = (token: bigint, incarnation = 'f00') => ({ domain: 'orders/eu', token, cluster: 'prod', incarnation });

describe.skipIf(driver?.open === undefined)(`fence on SQLite through ${driver?.name ?? ''}`, () => {
  let folder: string;
  let file: string;
  let at: string;
  const opened: { close(): unknown }[] = [];

  beforeEach(async () => {
    folder = await mkdtemp(join(tmpdir(), 'fencepost-fence-'));
    file = join(folder, 'orders.db');
    at = `sqlite:${file}`;
  });
  afterEach(async () => {
    for (const db of opened.splice(0)) db.close();
    await rm(folder, { recursive: true });
  });

  function open() {
    const db = driver?.open?.(file);
    if (db === undefined) throw new Error('no driver');
    opened.push(db);
    db.exec('pragma synchronous = full');
    return db;
  }
  /** A guard that has accepted this token. */
  function raised(token: bigint) {
    const guard = sqliteFence(open());
    expect(guard.open(lease(token)).status).toBe('applied');
    return guard;
  }

  it('migrate makes the table that the guard takes, prints it, and does nothing the second time', async () => {
    const { db } = { db: open() };
    db.exec('create table stock (qty)');
    expect(JSON.parse((await fence(`migrate --json --at ${at}`)).out)).toEqual({
      resource: expect.stringMatching(/^SQLite 3\.\d+\.\d+, /) as string,
      before: null,
      after: 1,
    });
    raised(TOKEN);
    expect(JSON.parse((await fence(`migrate --json --at ${at}`)).out)).toMatchObject({ before: 1, after: 1 });
    expect(JSON.parse((await fence(`show --json --at ${at}`)).out)).toMatchObject({
      fences: [{ token: String(TOKEN) }],
    });
    const { out } = await fence('migrate --print --at sqlite:x');
    expect(out).toContain('create table if not exists fencepost_fence (');
    db.exec(`drop table fencepost_fence; drop table fencepost_fence_history; ${out}`);
    raised(TOKEN);
  });

  it('show and reset, with all bits; the note is kept, and the holder of that token writes again', async () => {
    const guard = raised(2n ** 62n + 1n);
    expect(JSON.parse((await fence(`show orders/eu --json --at ${at}`)).out)).toMatchObject({
      fences: [
        { domain: 'orders/eu', token: '4611686018427387905', date: null, issuer: 'fencepost:prod', incarnation: 'f00' },
      ],
      observed: [],
    });
    expect(guard.open(lease(TOKEN)).status).toBe('stale');
    const done = await fence(`reset orders/eu ${TOKEN} --note poisoned --at ${at}`);
    expect(done.code).toBe(0);
    expect(done.out).toContain(
      'before       4611686018427387905 (no date)\nnow          1796000000000041 (2026-11-30T',
    );
    expect(guard.fence('orders/eu')).toEqual({ token: TOKEN, issuer: 'fencepost:prod', incarnation: 'f00' });
    expect(guard.open(lease(TOKEN - 1n)).status).toBe('stale');
    expect(guard.open(lease(TOKEN)).status).toBe('applied');
    await fence(`reset orders/eu ${TOKEN} --note restored --incarnation f01 --at ${at}`);
    expect(guard.open(lease(TOKEN, 'f01')).status).toBe('applied');
    const notes = open().prepare(
      "select group_concat(note || ' ' || token_before) as notes from fencepost_fence_history",
    );
    expect(notes.get()).toEqual({ notes: `poisoned 4611686018427387905,restored ${TOKEN}` });
  });

  it('a domain without a fence: exit code 1, and reset makes none', async () => {
    const guard = raised(TOKEN);
    for (const line of ['show orders/mars', 'reset orders/mars 5 --note x']) {
      const { code, err } = await fence(`${line} --at ${at}`);
      expect(code).toBe(1);
      expect(err).toContain('orders/mars has no fence');
    }
    expect(guard.fence('orders/mars')).toBeUndefined();
  });

  it('reset gives up when another has the write lock for longer than --timeout-ms', async () => {
    const guard = raised(TOKEN);
    const other = open();
    other.exec('begin immediate');
    const { code, err } = await fence(`reset orders/eu 5 --note x --timeout-ms 50 --at ${at}`);
    other.exec('rollback');
    expect(code).toBe(3);
    expect(err).toContain(`REFUSED: fence: ${file} refused: database is locked`);
    expect(guard.fence('orders/eu')?.token).toBe(TOKEN);
  });

  it('makes no file, and takes none that is not of SQLite', async () => {
    const missing = await fence(`migrate --at ${at}`);
    expect(missing.code).toBe(3);
    expect(missing.err).toContain(`NO_CONNECTION: fence: ${file} cannot be opened: `);
    expect(existsSync(file)).toBe(false);
    expect((await fence(`show --at sqlite:${folder}/no/such.db`)).err).toContain('NO_CONNECTION: fence: ');
    writeFileSync(file, 'no database, but as long as the head of one would be'.repeat(20));
    expect((await fence(`show --at ${at}`)).err).toMatch(
      /orders\.db (?:refused|cannot be opened): file is not a database/,
    );
  });

  it('says how to migrate where there is no table', async () => {
    open().exec('create table stock (qty)');
    for (const line of ['show', 'show orders/eu', 'reset orders/eu 5 --note x']) {
      const { code, err } = await fence(`${line} --at ${at}`);
      expect(code).toBe(3);
      expect(err).toContain('this file has no table of fences: run fencepost fence migrate');
    }
    expect(await doctor(at)).toMatchObject({
      code: 1,
      faults: ['not-migrated fencepost_fence'],
      report: { fences: null },
    });
  });

  it('leaves a table of that name that is not the guard’s alone', async () => {
    open().exec('create table fencepost_fence (domain text primary key, token real, issuer text, incarnation text)');
    for (const line of ['show', 'migrate', 'reset orders/eu 5 --note x'])
      expect((await fence(`${line} --at ${at}`)).err).toContain('is not that of the guard: rename it');
    expect(await doctor(at)).toMatchObject({
      code: 1,
      faults: ['fence-table fencepost_fence'],
      report: { fences: null },
    });
  });

  it('doctor: nothing in a good file but what SQLite has not', async () => {
    raised(TOKEN);
    expect(await doctor(at)).toMatchObject({
      code: 0,
      faults: [],
      notes: ['no-limit write lock'],
      report: { fences: 1 },
    });
  });

  it('doctor: a trigger on the fences', async () => {
    raised(TOKEN);
    const db = open();
    db.exec('create trigger t after update on fencepost_fence begin delete from fencepost_fence; end');
    expect(await doctor(at)).toMatchObject({ code: 1, faults: ['fence-trigger t'] });
    db.exec('drop trigger t');
    expect(await doctor(at)).toMatchObject({ code: 0 });
  });

  it('doctor: a damaged page', async () => {
    raised(TOKEN);
    const db = open();
    const { root } = db.prepare("select rootpage as root from sqlite_schema where name = 'fencepost_fence'").get() as {
      readonly root: number;
    };
    for (const each of opened.splice(0)) each.close();
    expect(await doctor(at)).toMatchObject({ code: 0 });
    const handle = openSync(file, 'r+');
    writeSync(handle, Buffer.alloc(64, 0xee), 0, 64, (root - 1) * 4_096);
    closeSync(handle);
    expect(await doctor(at)).toMatchObject({ code: 1, faults: ['damaged fencepost_fence'], report: { fences: null } });
  });
});
