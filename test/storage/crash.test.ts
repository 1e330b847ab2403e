/**
 * A running store ended before and after each write to the database and each operation on MARK, by a kill and by power
 * loss (S2). No copy may be refused, and each holds what was acknowledged, with or without the write under way.
 */
import { isDeepStrictEqual } from 'node:util';
import { afterAll, describe, expect, it } from 'vitest';
import type { Domain } from '../../src/base/ids.js';
import type { Store } from '../../src/replica/ports.js';
import type { Loaded } from '../../src/replica/types.js';
import { storeGenesis } from '../../src/storage/begin.js';
import { prepareDirectory } from '../../src/storage/directory.js';
import { nodeFiles, type Files } from '../../src/storage/files.js';
import { openStore } from '../../src/storage/open.js';
import { nodeStorage } from '../../src/storage/ports.js';
import { createMemoryDisk, openMemoryStore } from '../../src/testing/memory-store.js';
import {
  B,
  C,
  cutAt,
  domainRecord,
  entries,
  EXPECTED,
  finishedRecord,
  freshPath,
  GENESIS,
  genesisFor,
  hard,
  logWrite,
  meta,
  readChunks,
  removePaths,
  Reports,
} from './fixtures.js';
import { ImageDirectory, readImage, removeImages, type Image } from './images.js';

afterAll(async () => {
  removeImages();
  await removePaths();
});

/** Something submitted, and the report that acknowledges it. */
interface Operation {
  readonly submit: (store: Store) => void;
  readonly report: string;
}

/** Every kind of write, one after the other. A chunk's digest depends on the store that it comes from. */
async function operations(source: Store): Promise<Operation[]> {
  const reports = new Reports();
  source.listen(reports);
  source.write(logWrite(1, 1, entries(1, 20, 1)));
  source.cut(cutAt(20, 1, { put: Array.from({ length: 9 }, (_, i) => domainRecord(`s/${i}`, i + 1)) }));
  await reports.until('cut 20');
  const [whole] = await readChunks(source.openSnapshot(), 1_000_000);
  if (whole === undefined) throw new Error('no snapshot');
  const chunks = [0, 1, 2].map((sequence): Operation => {
    const records = whole.records.slice(3 * sequence, 3 * sequence + 3);
    const chunk = { ...whole, sequence, records, total: sequence === 2 ? whole.total : undefined };
    return {
      report: `staged ${chunk.request}/${sequence}`,
      submit: (store) => {
        store.stage(chunk);
      },
    };
  });
  let seq = 0;
  const write = (
    ...[term, written, more]: Parameters<typeof logWrite> extends [number, ...infer Rest] ? Rest : never
  ) => {
    const given = logWrite(++seq, term, written, more);
    return {
      report: `written ${given.seq}`,
      submit: (store: Store) => {
        store.write(given);
      },
    };
  };
  const cut = (...given: Parameters<typeof cutAt>) => ({
    report: `cut ${given[0]}`,
    submit: (store: Store) => {
      store.cut(cutAt(...given));
    },
  });
  return [
    write(1, entries(1, 4, 1), { hard: hard(1, B) }),
    write(1, entries(5, 8, 1), { hard: hard(1, B) }),
    write(2, entries(7, 9, 2), { cutFrom: 7 }),
    cut(6, 1, { put: [domainRecord('x', 2), domainRecord('y', 3)] }),
    write(3, entries(10, 11, 3), { hard: hard(3, C) }),
    cut(8, 2, { put: [finishedRecord(8)], remove: [{ type: 'domain', domain: 'x' as Domain }], keepFrom: 5 }),
    write(4, entries(9, 9, 4), { cutFrom: 9 }),
    // Beyond the snapshot that is installed next: uncommitted, and dropped with the rest.
    write(4, entries(10, 22, 4)),
    ...chunks,
    write(5, entries(21, 22, 5), { install: meta(20, 1), hard: hard(5, B) }),
    write(5, entries(23, 25, 5), { hard: hard(5, B) }),
    write(6, [], { cutFrom: 24 }),
    cut(22, 5, { put: [domainRecord('z', 22)], keepFrom: 23 }),
    write(6, [], { hard: hard(6, B) }),
    write(7, entries(23, 24, 7), { cutFrom: 23 }),
  ];
}

/** What a start must find after each operation, from the memory twin. */
async function expectedAfterEach(genesis: Loaded['genesis']): Promise<Loaded[]> {
  const disk = createMemoryDisk(genesis);
  const states = [openMemoryStore(disk).loaded];
  const all = await operations(openMemoryStore(createMemoryDisk(GENESIS)));
  const store = openMemoryStore(disk);
  const reports = new Reports();
  store.listen(reports);
  for (const { submit, report } of all) {
    submit(store);
    await reports.until(report);
    states.push(openMemoryStore(copyDisk(disk)).loaded);
  }
  return states;
}

function copyDisk(disk: ReturnType<typeof createMemoryDisk>): ReturnType<typeof createMemoryDisk> {
  const copy = createMemoryDisk(disk.image.genesis);
  copy.image = structuredClone(disk.image);
  return copy;
}

/** The files at one moment. */
interface Moment {
  readonly what: string;
  readonly image: Image;
  /** MARK as it was when it was last synced. */
  readonly syncedMark: Buffer;
  readonly acknowledged: number;
}

/** The MARKs that this moment may leave: a kill leaves the newest, power loss any mixture of pages since the last sync. */
function marksAt({ image, syncedMark }: Moment): Map<string, Buffer> {
  const newest = Buffer.concat([image.get('MARK') ?? Buffer.alloc(0)], 4096 + 256);
  const synced = Buffer.concat([syncedMark], 4096 + 256);
  return new Map([
    ['newest', newest],
    ['synced', synced],
    ['first page newest', Buffer.concat([newest.subarray(0, 4096), synced.subarray(4096)])],
    ['second page newest', Buffer.concat([synced.subarray(0, 4096), newest.subarray(4096)])],
  ]);
}

describe('a running store', () => {
  it('ended at any moment starts again, with everything acknowledged', async () => {
    const path = await freshPath();
    const directory = await prepareDirectory(path, EXPECTED);
    const genesis = genesisFor(directory);
    await storeGenesis(path, genesis, directory);
    const expected = await expectedAfterEach(genesis);

    const moments: Moment[] = [];
    let acknowledged = 0;
    let syncedMark = readImage(path).get('MARK') ?? Buffer.alloc(0);
    const moment = (what: string) => {
      moments.push({ what, image: readImage(path), syncedMark, acknowledged });
    };
    const files: Files = {
      ...nodeFiles,
      async openInPlace(name) {
        const file = await nodeFiles.openInPlace(name);
        return {
          ...file,
          async write(bytes, position) {
            moment('before MARK is written');
            await file.write(bytes, position);
            moment('after MARK is written');
          },
          async sync() {
            await file.sync();
            syncedMark = readImage(path).get('MARK') ?? Buffer.alloc(0);
            moment('after MARK is synced');
          },
        };
      },
    };

    const sourcePath = await freshPath();
    const sourceDirectory = await prepareDirectory(sourcePath, EXPECTED);
    await storeGenesis(sourcePath, genesisFor(sourceDirectory), sourceDirectory);
    const source = await openStore(sourcePath, EXPECTED);
    const all = await operations(source);
    const store = await openStore(path, EXPECTED, { ...nodeStorage, files });
    const reports = new Reports();
    store.listen(reports);
    for (const { submit, report } of all) {
      submit(store);
      await reports.until(report);
      acknowledged++;
      moment('after it was reported');
    }
    await store.close();
    moment('after a stop');
    await source.close();

    expect(moments.length).toBeGreaterThan(3 * all.length);
    const outcomes = { without: 0, with: 0 };
    for (const at of moments) {
      for (const [mark, bytes] of marksAt(at)) {
        const copy = new ImageDirectory(new Map([...at.image, ['MARK', bytes] as const]));
        const opened = await openStore(copy.path, EXPECTED).catch((error: unknown) => {
          throw new Error(`operation ${at.acknowledged}, ${at.what}, MARK ${mark}: refused`, { cause: error });
        });
        await opened.close();
        const alternatives = expected.slice(at.acknowledged, at.acknowledged + 2);
        const which = alternatives.findIndex((state) => isDeepStrictEqual(state, opened.loaded));
        if (which < 0)
          expect(opened.loaded, `operation ${at.acknowledged}, ${at.what}, MARK ${mark}`).toEqual(alternatives[0]);
        outcomes[which === 0 ? 'without' : 'with']++;
      }
    }
    expect(outcomes.without).toBeGreaterThan(100);
    expect(outcomes.with).toBeGreaterThan(20);
  }, 120_000);
});
