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

/** A MARK file whose synced contents can be looked at. */
function markFile(bytes = new Uint8Array(2 * 4096)) {
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
  return { bytes, synced, ports };
}

/** `bytes` with half of the slot at `offset` overwritten. */
function torn(bytes: Uint8Array, offset: number): Uint8Array {
  const copy = bytes.slice();
  return copy.fill(0xff, offset, offset + MARK_SLOT_BYTES / 2);
}

describe('MARK', () => {
  it('is lower in both slots before a cut: one torn write does not bring the higher one back (S2.1)', async () => {
    for (const writes of [1, 2, 3, 4]) {
      const { ports, synced } = markFile();
      const mark = await MarkFile.open(ports, '', { ...markAt(0, 0), counter: 0 }, () => undefined);
      for (let write = 1; write <= writes; write++) await mark.write(markAt(write, 10 * write));
      await mark.lower(markAt(writes, 5));
      const durable = synced.at(-1) ?? new Uint8Array(0);
      expect(decodeMarkFile(durable)).toMatchObject(markAt(writes, 5));
      for (const offset of MARK_SLOT_OFFSETS) {
        expect(decodeMarkFile(torn(durable, offset))).toMatchObject(markAt(writes, 5));
      }
    }
  });

  it('is whole in both slots once the file is open: a power loss before had torn one, the next may tear the other', async () => {
    for (const offset of MARK_SLOT_OFFSETS) {
      const { ports, bytes, synced } = markFile();
      const first = await MarkFile.open(ports, '', { ...markAt(1, 1), counter: 1 }, () => undefined);
      await first.lower(markAt(2, 1));
      bytes.set(torn(bytes, offset));
      const held = decodeMarkFile(bytes);
      const again = await MarkFile.open(ports, '', held, () => undefined);
      const durable = synced.at(-1) ?? new Uint8Array(0);
      // Two more writes, of which the power loss leaves a part of the second only.
      await again.write(markAt(3, 2));
      await again.write(markAt(4, 3));
      for (const other of MARK_SLOT_OFFSETS) {
        expect(decodeMarkFile(torn(durable, other))).toMatchObject(markAt(2, 1));
      }
    }
  });
});
