/** The bytes on disk, frozen: a directory written by one version is read by the next. */
import { describe, expect, it } from 'vitest';
import type { Incarnation } from '../../src/base/ids.js';
import { CorruptBytes } from '../../src/wire/corrupt.js';
import { crc32c } from '../../src/base/digest.js';
import { blockKey, firstOfBlockKey, metaKey, tableKey } from '../../src/wire/disk.js';
import { decodeIdentity, encodeIdentity } from '../../src/wire/disk-identity.js';
import { decodeBlock, encodeBlock } from '../../src/wire/disk-log.js';
import { decodeMarkFile, encodeMarkSlot } from '../../src/wire/disk-mark.js';
import {
  decodeCutMeta,
  decodeHardState,
  decodePointer,
  encodeCutMeta,
  encodeHardState,
  encodePointer,
  sealGenesis,
  unsealGenesis,
} from '../../src/wire/disk-records.js';
import { A, B, C, configurationEntry, CONFIGURATION, entries, EXPECTED, GENESIS, meta, SUMMARY } from './fixtures.js';

const hex = (bytes: Uint8Array) => Buffer.from(bytes).toString('hex');

/** The same record in a format that does not exist yet, with the right checksum. */
function nextFormat(sealed: Uint8Array): Uint8Array {
  const copy = Buffer.from(sealed);
  copy.writeUInt8(copy.readUInt8(1) + 1, 1);
  copy.writeUInt32BE(crc32c(copy.subarray(0, -4)), copy.length - 4);
  return copy;
}

describe('bytes on disk', () => {
  const hard = { write: 2 ** 40 + 3, term: 7, vote: B };
  const mark = { counter: 9, write: 12, term: 7, vote: undefined, index: 41, indexTerm: 6, chain: 0xfedcba98 };
  const identity = {
    type: 'member',
    ...EXPECTED,
    cluster: 'tést "1"',
    directory: A.directory,
    incarnation: 'a'.repeat(32) as Incarnation,
  } as const;

  it('are what they were', () => {
    expect(hex(blockKey(258))).toBe('030000000000000102');
    expect(hex(metaKey(3))).toBe('05000000000000000300');
    expect(hex(tableKey(3, Uint8Array.of(0xaa)))).toBe('05000000000000000301aa');
    expect(hex(encodePointer(5))).toMatchInlineSnapshot(`"5001000000000000000592a851b1"`);
    expect(hex(encodeHardState(hard))).toMatchInlineSnapshot(
      `"480100000100000000030000000000000007010000000162000000203632326532653265326532653265326532653265326532653265326532653265743d4f40"`,
    );
    expect(hex(encodeMarkSlot(mark)).replace(/(00)+$/, '')).toMatchInlineSnapshot(
      `"00334d010000000000000009000000000000000c00000000000000070000000000000000290000000000000006fedcba98f22eb499"`,
    );
    expect(hex(encodeBlock(3, 0x01020304, entries(3, 4, 2, 3)).value)).toMatchInlineSnapshot(
      `"01000000000000000300000002010203040000000000000003000000000000000201000000030203030000000000000004000000000000000201000000030204048dbe090d"`,
    );
    expect(Buffer.from(encodeIdentity(identity)).toString()).toMatchInlineSnapshot(`
      "fencepost-identity 1
      cluster "tést \\"1\\""
      node a
      directory 612e2e2e2e2e2e2e2e2e2e2e2e2e2e2e
      member aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa
      checksum 704144d4
      "
    `);
  });

  it('are read back', () => {
    expect(decodePointer(encodePointer(5))).toBe(5);
    expect(decodeHardState(encodeHardState(hard))).toEqual(hard);
    expect(decodeMarkFile(encodeMarkSlot(mark))).toEqual(mark);
    expect(decodeIdentity(encodeIdentity(identity))).toEqual(identity);
    expect(unsealGenesis(sealGenesis(GENESIS))).toEqual(GENESIS);
    const joint = { voters: [A, B], outgoing: [B, C], learners: [C] };
    const written = [...entries(5, 6, 2), configurationEntry(7, 3, joint)];
    const { value, chains } = encodeBlock(5, 77, written);
    expect(decodeBlock(value, 'block')).toEqual({ first: 5, before: 77, entries: written, chains });
    const cut = {
      prefix: 2,
      snapshot: { ...meta(9, 3), configuration: joint, configurationIndex: 7 },
      incarnation: GENESIS.incarnation,
      history: GENESIS.history,
      anchor: { index: 4, term: 2, chain: 99 },
      count: 3,
      sum: { high: 0xffffffff, low: 1 },
      summary: SUMMARY,
    };
    expect(decodeCutMeta(encodeCutMeta(cut))).toEqual(cut);
    expect(CONFIGURATION.voters).toHaveLength(3);
  });

  it('of a later format are refused by that name', () => {
    expect(() => decodeHardState(nextFormat(encodeHardState(hard)))).toThrow(
      'has format 2; this version of Fencepost reads format 1',
    );
    const block = Buffer.from(encodeBlock(1, 0, []).value);
    block.writeUInt8(2, 0);
    block.writeUInt32BE(crc32c(block.subarray(0, 17)), 17);
    expect(() => decodeBlock(block, 'log block 1')).toThrow('log block 1: has format 2');
  });

  it('cut or changed anywhere are refused', () => {
    const values: readonly (readonly [Uint8Array, (bytes: Uint8Array) => unknown])[] = [
      [encodePointer(5), decodePointer],
      [encodeHardState(hard), decodeHardState],
      [encodeIdentity(identity), decodeIdentity],
      [sealGenesis(GENESIS), unsealGenesis],
      [encodeBlock(5, 77, entries(5, 9, 2)).value, (bytes) => decodeBlock(bytes, 'block')],
    ];
    for (const [value, decode] of values) {
      for (let at = 0; at < value.length; at++) {
        expect(() => decode(value.subarray(0, at))).toThrow(CorruptBytes);
        for (const mask of [1, 0x80, 0xff]) {
          expect(() => decode(value.map((byte, i) => (i === at ? byte ^ mask : byte)))).toThrow(CorruptBytes);
        }
      }
    }
  });

  it('of keys sort by number', () => {
    const numbers = [1, 255, 256, 65_536, 2 ** 32 - 1, 2 ** 32, 2 ** 53 - 1];
    expect(numbers.map((number) => hex(blockKey(number))).sort()).toEqual(
      numbers.map((number) => hex(blockKey(number))),
    );
    expect(numbers.map((number) => firstOfBlockKey(blockKey(number)))).toEqual(numbers);
    expect(firstOfBlockKey(metaKey(1))).toBeUndefined();
  });

  it('give each entry a chain value that depends on all before it, not on how they were divided', () => {
    const all = entries(1, 6, 1);
    const { chains } = encodeBlock(1, 7, all);
    const first = encodeBlock(1, 7, all.slice(0, 2));
    const second = encodeBlock(3, first.chains[1] ?? 0, all.slice(2));
    expect([...first.chains, ...second.chains]).toEqual(chains);
    expect(encodeBlock(1, 8, all).chains.some((chain, i) => chain === chains[i])).toBe(false);
  });
});
