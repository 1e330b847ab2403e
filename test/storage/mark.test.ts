import { describe, expect, it } from 'vitest';
import { nodeFiles, type OpenFile } from '../../src/storage/files.js';
import { MarkFile } from '../../src/storage/mark.js';
import { decodeMarkFile, MARK_SLOT_BYTES, MARK_SLOT_OFFSETS, type Mark } from '../../src/wire/disk-mark.js';

const markAt = (write: number, index: number): Mark => ({
  write,
  term: 1,
  vote: undefined,
  index,
  indexTerm: 1,
  chain: index,
});

describe('MARK', () => {
  it('is lower in both slots before a cut: one torn write does not bring the higher one back (S2.1)', async () => {
    const bytes = new Uint8Array(2 * 4096);
    const synced: Uint8Array[] = [];
    const file: OpenFile = {
      write(written, position) {
        bytes.set(written, position);
        return Promise.resolve();
      },
      sync() {
        synced.push(bytes.slice());
        return Promise.resolve();
      },
      close: () => Promise.resolve(),
    };
    const ports = { files: { ...nodeFiles, openInPlace: () => Promise.resolve(file) }, after: () => () => undefined };
    for (const writes of [1, 2, 3, 4]) {
      const mark = await MarkFile.open(ports, '', 0, () => undefined);
      for (let write = 1; write <= writes; write++) await mark.write(markAt(write, 10 * write));
      await mark.lower(markAt(writes, 5));
      const durable = synced.at(-1) ?? new Uint8Array(0);
      expect(decodeMarkFile(durable)).toMatchObject(markAt(writes, 5));
      for (const offset of MARK_SLOT_OFFSETS) {
        const torn = durable.slice();
        torn.fill(0xff, offset, offset + MARK_SLOT_BYTES / 2);
        expect(decodeMarkFile(torn)).toMatchObject(markAt(writes, 5));
      }
    }
  });
});
