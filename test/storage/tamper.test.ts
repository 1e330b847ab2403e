/**
 * Databases in which LevelDB finds nothing wrong, but something is: a write that silently got lost, an old value that
 * came back, a record put elsewhere. Only the checks of a start stand between these and a wrong entry or a second vote.
 */
import { join } from 'node:path';
import { ClassicLevel } from 'classic-level';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Loaded } from '../../src/replica/types.js';
import { openStore } from '../../src/storage/open.js';
import { blockKey, HARD_KEY, metaKey, POINTER_KEY, tableKey } from '../../src/wire/disk.js';
import { decodeBlock, encodeBlock } from '../../src/wire/disk-log.js';
import {
  decodeCutMeta,
  decodeHardState,
  encodeCutMeta,
  encodeHardState,
  encodePointer,
} from '../../src/wire/disk-records.js';
import { encodeStateRecord } from '../../src/wire/state.js';
import { B, C, domainRecord, entries, EXPECTED, removePaths } from './fixtures.js';
import { ImageDirectory, removeImages } from './images.js';
import { memberImage, type MemberImage } from './member-image.js';

type Raw = ClassicLevel<Uint8Array, Uint8Array>;

let member: MemberImage;
beforeAll(async () => {
  member = await memberImage(true);
});
afterAll(async () => {
  removeImages();
  await removePaths();
});

const rawOpen = async (path: string): Promise<Raw> => {
  const raw: Raw = new ClassicLevel(join(path, 'database'), {
    keyEncoding: 'view',
    valueEncoding: 'view',
    compression: false,
  });
  await raw.open();
  return raw;
};

async function startAfter(tamper: (raw: Raw) => Promise<void>): Promise<{ path: string; loaded: Loaded }> {
  const { path } = new ImageDirectory(member.image);
  const raw = await rawOpen(path);
  await tamper(raw);
  await raw.close();
  const store = await openStore(path, EXPECTED);
  await store.close();
  return { path, loaded: store.loaded };
}

const valueOf = async (raw: Raw, key: Uint8Array): Promise<Uint8Array> => {
  const value = await raw.get(key);
  if (value === undefined) throw new Error('nothing there');
  return Uint8Array.from(value);
};

describe('a start', () => {
  it('accepts what was written', async () => {
    const { loaded } = await startAfter(() => Promise.resolve());
    expect(loaded.entries).toEqual(member.entries);
    expect(loaded.hard).toEqual(member.hard);
  });

  // Blocks of the member: 1–6 (t1; 5 and 6 superseded, then dropped by a cut), 5–8 (t2), 9–10 (t3), 11–12 (t4).
  const refused: readonly (readonly [what: string, message: RegExp, tamper: (raw: Raw) => Promise<void>])[] = [
    ['a lost last block', /ends at 10; MARK knows of entry 12/, (raw) => raw.del(blockKey(11))],
    ['a lost block in the middle', /entries 9 to 10 are missing/, (raw) => raw.del(blockKey(9))],
    ['a lost first block', /entries 5 to 8 are missing/, (raw) => raw.del(blockKey(5))],
    [
      'a lost block that superseded the tail of the one before it (F9.1)',
      /log block 9: was written behind another entry/,
      async (raw) => {
        const { before } = decodeBlock(await valueOf(raw, blockKey(5)), '');
        await raw.put(blockKey(5), encodeBlock(5, before, entries(5, 8, 1)).value);
      },
    ],
    [
      'other contents of the last entry, of the same index and term',
      /has another entry 12 than MARK knows of/,
      async (raw) => {
        const { before, entries: found } = decodeBlock(await valueOf(raw, blockKey(11)), '');
        const changed = found.map((entry) => ({ ...entry, payload: entry.payload.map((byte) => byte + 1) }));
        await raw.put(blockKey(11), encodeBlock(11, before, changed).value);
      },
    ],
    [
      'another last entry in the place of the one of MARK',
      /has another entry 12 than MARK knows of/,
      async (raw) => {
        const { before } = decodeBlock(await valueOf(raw, blockKey(11)), '');
        await raw.put(blockKey(11), encodeBlock(11, before, entries(11, 14, 3)).value);
      },
    ],
    [
      'terms that fall',
      /entry 11 has a lower term/,
      async (raw) => {
        const { before } = decodeBlock(await valueOf(raw, blockKey(11)), '');
        await raw.put(blockKey(11), encodeBlock(11, before, entries(11, 12, 2)).value);
      },
    ],
    [
      'a block under the key of another',
      /log block 13: says that it begins at 11/,
      async (raw) => raw.put(blockKey(13), await valueOf(raw, blockKey(11))),
    ],
    [
      'a lost vote',
      /is that of write \d+; MARK knows of write/,
      (raw) => rewriteHard(raw, { write: -1, term: 4, vote: undefined }),
    ],
    ['another vote', /give different votes in term 5/, (raw) => rewriteHard(raw, { write: 0, term: 5, vote: B })],
    [
      'another vote by a later write',
      /give different votes in term 5/,
      (raw) => rewriteHard(raw, { write: 1, term: 5, vote: B }),
    ],
    [
      'a withdrawn vote',
      /give different votes in term 5/,
      (raw) => rewriteHard(raw, { write: 1, term: 5, vote: undefined }),
    ],
    [
      'a term that went back',
      /has term 4; MARK knows of term 5/,
      (raw) => rewriteHard(raw, { write: 1, term: 4, vote: C }),
    ],
    [
      'a term that moved without a write',
      /give different terms for write/,
      (raw) => rewriteHard(raw, { write: 0, term: 6, vote: C }),
    ],
    ['no hard state', /the hard-state record: is missing/, (raw) => raw.del(HARD_KEY)],
    ['a lost record', /has 2 records instead of 3/, (raw) => raw.del(stateKey('x', 2))],
    [
      'a record that came back',
      /has 4 records instead of 3/,
      (raw) => raw.put(stateKey('y', 3), encodeStateRecord(domainRecord('y', 3)).value),
    ],
    [
      'an older record',
      /the sum of its records is wrong/,
      (raw) => raw.put(stateKey('x', 2), encodeStateRecord(domainRecord('x', 1)).value),
    ],
    [
      'the records of two domains exchanged',
      /the sum of its records is wrong/,
      async (raw) => {
        const [x, z] = [await valueOf(raw, stateKey('x', 2)), await valueOf(raw, stateKey('z', 7))];
        await raw.batch([
          { type: 'put', key: stateKey('x', 2), value: z },
          { type: 'put', key: stateKey('z', 7), value: x },
        ]);
      },
    ],
    ['no meta record', /meta record of the state's cut: is missing/, (raw) => raw.del(metaKey(1))],
    [
      'a pointer to nothing',
      /meta record of the state's cut: is missing/,
      (raw) => raw.put(POINTER_KEY, encodePointer(7)),
    ],
    [
      'the meta record of another table',
      /is that of another table/,
      async (raw) => {
        await raw.put(metaKey(2), await valueOf(raw, metaKey(1)));
        await raw.put(POINTER_KEY, encodePointer(2));
      },
    ],
    ['a table ahead of its log', /ends at 12, before the state table, which is at 13/, (raw) => moveTable(raw, 13, 5)],
    ['a table of another log', /has another entry 9 than the table/, (raw) => moveTable(raw, 9, 2)],
    [
      'a table of another history',
      /not of the history that Genesis began/,
      async (raw) => {
        const meta = decodeCutMeta(await valueOf(raw, metaKey(1)));
        await raw.put(metaKey(1), encodeCutMeta({ ...meta, history: { ...meta.history, start: 1 } }));
      },
    ],
  ];
  for (const [what, message, tamper] of refused) {
    it(`refuses ${what}`, async () => {
      await expect(startAfter(tamper)).rejects.toThrow(message);
    });
  }

  it('does not judge blocks below the anchor and tables out of use, which a power loss may bring back, and removes them (S2.2)', async () => {
    const stray = [blockKey(1), blockKey(3), tableKey(3, Uint8Array.of(1)), tableKey(0, Uint8Array.of(1)), metaKey(3)];
    const { path, loaded } = await startAfter((raw) =>
      raw.batch(stray.map((key) => ({ type: 'put' as const, key, value: Uint8Array.of(9, 9) }))),
    );
    expect(loaded.entries).toEqual(member.entries);
    expect(loaded.records).toEqual(member.state.records);
    const raw = await rawOpen(path);
    for (const key of stray) expect(await raw.get(key)).toBeUndefined();
    await raw.close();
  });

  it('leaves a refused directory as it is', async () => {
    const { path } = new ImageDirectory(member.image);
    const raw = await rawOpen(path);
    await raw.del(blockKey(9));
    await raw.put(blockKey(2), Uint8Array.of(9));
    await raw.close();
    await expect(openStore(path, EXPECTED)).rejects.toThrow(/missing/);
    const again = await rawOpen(path);
    expect(await again.get(blockKey(2))).toBeDefined();
    await again.close();
    await expect(openStore(path, EXPECTED)).rejects.toThrow(/missing/);
  });
});

const stateKey = (domain: string, token: number) => tableKey(1, encodeStateRecord(domainRecord(domain, token)).key);

/** `write` counts from the number that is there. */
async function rewriteHard(raw: Raw, hard: Parameters<typeof encodeHardState>[0]): Promise<void> {
  const { write } = decodeHardState(await valueOf(raw, HARD_KEY));
  await raw.put(HARD_KEY, encodeHardState({ ...hard, write: write + hard.write }));
}

async function moveTable(raw: Raw, index: number, term: number): Promise<void> {
  const meta = decodeCutMeta(await valueOf(raw, metaKey(1)));
  await raw.put(metaKey(1), encodeCutMeta({ ...meta, snapshot: { ...meta.snapshot, index, term } }));
}
