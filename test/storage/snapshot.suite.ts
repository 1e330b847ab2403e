/** What every store must do with snapshots: read them, stage them, put them in force. */
import { expect, it } from 'vitest';
import type { Store } from '../../src/replica/ports.js';
import type { SnapshotChunk } from '../../src/replica/types.js';
import { B, cutAt, domainRecord, entries, hard, logWrite, meta, readChunks, SUMMARY } from './fixtures.js';
import type { Reports } from './fixtures.js';
import { Runs } from './runs.js';
import type { Directory } from './runs.js';

export function snapshotSuite(make: () => Promise<Directory>): void {
  const runs = new Runs();

  const fill = async (store: Store, reports: Reports, count: number) => {
    store.write(logWrite(1, 1, entries(1, count + 1, 1)));
    store.cut(cutAt(count, 1, { put: Array.from({ length: count }, (_, i) => domainRecord(`d/${1000 + i}`, i + 1)) }));
    await reports.until(`cut ${count}`);
  };

  it('are read in pieces of the size asked for, from one moment', async () => {
    const { store, reports } = await runs.start(await make());
    await fill(store, reports, 50);
    const before = store.loaded.records;
    const reader = store.openSnapshot();
    const unread = store.openSnapshot();
    const first = await reader.next(1_000);
    store.cut(cutAt(51, 1, { put: [domainRecord('d/1049', 999), domainRecord('zz', 1000)] }));
    await reports.until('cut 51');
    const rest = await readChunks(reader, 1_000);
    const late = await readChunks(unread, 1_000);
    expect(late.flatMap((chunk) => chunk.records)).toHaveLength(50);
    expect(late.at(-1)?.meta.index).toBe(50);
    expect(before).toEqual([]);
    expect(first?.total).toBeUndefined();
    expect(rest.length).toBeGreaterThan(2);
    for (const { records } of [...(first ? [first] : []), ...rest])
      expect(JSON.stringify(records).length).toBeLessThan(8_000);
    const records = [...(first?.records ?? []), ...rest.flatMap((chunk) => chunk.records)];
    expect(records).toEqual(Array.from({ length: 50 }, (_, i) => domainRecord(`d/${1000 + i}`, i + 1)));
    expect(rest.map((chunk) => chunk.total?.count)).toEqual([...rest.slice(1).map(() => undefined), 50]);
    expect(rest.every((chunk) => chunk.meta.index === 50)).toBe(true);
  });

  it('of an empty table are one empty chunk', async () => {
    const { store } = await runs.start(await make());
    const chunks = await readChunks(store.openSnapshot(), 1_000);
    expect(chunks).toMatchObject([{ records: [], total: { count: 0, digest: '0000000000000000' } }]);
  });

  /** A follower with a log and a table of its own that a transfer replaces. */
  const follower = async () => {
    const source = await runs.start(await make());
    await fill(source.store, source.reports, 50);
    const chunks = await readChunks(source.store.openSnapshot(), 2_000);
    const directory = await make();
    const target = await runs.start(directory);
    target.store.write(logWrite(1, 1, entries(1, 5, 1)));
    target.store.cut(cutAt(2, 1, { put: [domainRecord('old', 2)] }));
    await target.reports.until('cut 2');
    const stage = async (wanted: readonly SnapshotChunk[]) => {
      for (const chunk of wanted) target.store.stage(chunk);
      const last = wanted.at(-1);
      await target.reports.until(`staged ${last?.request ?? 0}/${last?.sequence ?? 0}`);
    };
    return { chunks, directory, stage, ...target };
  };
  const expected = Array.from({ length: 50 }, (_, i) => domainRecord(`d/${1000 + i}`, i + 1));

  it('are staged beside the table and put in force by one write', async () => {
    const { chunks, directory, stage, store, reports } = await follower();
    await stage(chunks);
    store.write(logWrite(2, 6, entries(51, 52, 6), { install: meta(50, 1), hard: hard(6, B) }));
    await reports.until('written 2');
    const loaded = await runs.killed(directory, store);
    expect(loaded).toEqual({
      genesis: directory.genesis,
      hard: hard(6, B),
      anchor: { index: 50, term: 1 },
      entries: entries(51, 52, 6),
      snapshot: meta(50, 1),
      summary: SUMMARY,
      records: expected,
    });
    const again = await runs.start(directory);
    again.store.cut(cutAt(52, 6, { put: [domainRecord('d/1000', 52)] }));
    await again.reports.until('cut 52');
    expect((await runs.reopened(directory, again.store)).records).toEqual([
      domainRecord('d/1000', 52),
      ...expected.slice(1),
    ]);
  });

  it('leave nothing behind when they are not put in force', async () => {
    const { chunks, directory, stage, store } = await follower();
    await stage(chunks.slice(0, 2));
    const loaded = await runs.killed(directory, store);
    expect(loaded.records).toEqual([domainRecord('old', 2)]);
    expect(loaded.entries).toEqual(entries(1, 5, 1));
  });

  it('begin afresh with chunk 0', async () => {
    const { chunks, directory, stage, store, reports } = await follower();
    await stage(
      chunks.slice(0, 2).map((chunk) => ({ ...chunk, records: [domainRecord('stray', 1), ...chunk.records] })),
    );
    await stage(chunks.map((chunk) => ({ ...chunk, request: 2 })));
    store.write(logWrite(2, 6, [], { install: meta(50, 1) }));
    await reports.until('written 2');
    expect((await runs.reopened(directory, store)).records).toEqual(expected);
  });

  it('are refused when the sender has another sum, and the process ends', async () => {
    const { chunks, directory, stage, store, reports } = await follower();
    await stage(
      chunks.map((chunk, i) =>
        i === 1 ? { ...chunk, records: [domainRecord('d/1000', 77), ...chunk.records.slice(1)] } : chunk,
      ),
    );
    store.write(logWrite(2, 6, [], { install: meta(50, 1) }));
    await expect(reports.until('written 2')).rejects.toThrow(/sum/);
    expect((await runs.killed(directory, store)).records).toEqual([domainRecord('old', 2)]);
  });

  it('are refused when a chunk is missing', async () => {
    const { chunks, stage, store, reports } = await follower();
    await stage(chunks.slice(0, -1));
    store.write(logWrite(2, 6, [], { install: meta(50, 1) }));
    await expect(reports.until('written 2')).rejects.toThrow(/snapshot at 50/);
  });

  it('outlive cuts of the table that they replaced, which are dropped (S4.2)', async () => {
    const { chunks, directory, stage, store, reports } = await follower();
    await stage(chunks);
    store.write(logWrite(2, 6, [], { install: meta(50, 1) }));
    store.cut(cutAt(5, 1, { put: [domainRecord('old', 5)] }));
    store.write(logWrite(3, 6, entries(51, 51, 6)));
    await reports.until('written 3');
    expect(reports.lines).not.toContain('cut 5');
    const loaded = await runs.killed(directory, store);
    expect(loaded.snapshot).toEqual(meta(50, 1));
    expect(loaded.records).toEqual(expected);
  });
}
