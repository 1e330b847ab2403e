/**
 * What disks at rest do to what was written: a byte changes, a write turns out never to have reached the medium, an
 * older block stands where a newer one was written. LevelDB notices most of it; this is what is left to the checks of a
 * start (test/storage/tamper.test.ts).
 */
import { nextInt, type Random } from '../../../src/base/random.js';
import type { Loaded } from '../../../src/replica/types.js';
import { DATABASE, IDENTITY_FILE, MARK_FILE } from '../../../src/storage/directory.js';
import { firstOfBlockKey } from '../../../src/wire/disk.js';
import { decodeBlock, encodeBlock } from '../../../src/wire/disk-log.js';
import { chance, pick } from '../chance.js';
import { FileNode, type DirectoryNode } from './file-tree.js';
import { bytesOf, type Change, type KeyText, type Records } from './records.js';
import { DatabaseNode } from './sim-database.js';

/** A data directory at rest. */
export interface Place {
  readonly directory: DirectoryNode;
  readonly records: Records;
}

/** What a key begins with (src/wire/disk.ts). */
const [HARD, LOG, TABLE] = ['\x01', '\x03', '\x05'] as const;
/** The byte of a table's key that tells its meta record, 0, from its other records. */
const PART_OFFSET = 9;
/** So many writes are lost together at most. */
const MAX_LOST = 3;

/** The data directory in `directory`; undefined unless it is a member's. */
export function placeOf(directory: DirectoryNode | undefined): Place | undefined {
  const database = directory?.names.get(DATABASE);
  if (directory === undefined || !(database instanceof DatabaseNode)) return undefined;
  const whole = [IDENTITY_FILE, MARK_FILE].every((name) => directory.names.get(name) instanceof FileNode);
  return whole ? { directory, records: database.records } : undefined;
}

/** Changes one byte, in each kind of file or record as often as in any other. Returns where; undefined without a place. */
export function flipByte({ directory, records }: Place, random: Random): string | undefined {
  const keys = [...records.view.keys()].sort();
  const area = pick(random, [IDENTITY_FILE, MARK_FILE, ...new Set(keys.map((key) => key.charAt(0)))]);
  const file = directory.names.get(area);
  const among = keys.filter((key) => key.startsWith(area));
  // What was written last is what is read next.
  const key = file !== undefined ? '' : chance(random, 500) ? (among.at(-1) ?? '') : pick(random, among);
  const bytes = (file instanceof FileNode ? file.bytes : records.get(key))?.slice();
  if (bytes === undefined || bytes.length === 0) return undefined;
  const at = nextInt(random, 0, bytes.length - 1);
  bytes[at] = (bytes[at] ?? 0) ^ nextInt(random, 1, 255);
  if (file instanceof FileNode) file.replace(bytes);
  else records.damage([{ key, value: bytes }]);
  return `byte ${at} of ${file === undefined ? `record ${hex(key)}` : area}`;
}

/**
 * The last writes are gone, or one record of them: of a disk whose MARK is exact, on which a start finds `loaded`.
 * Returns what happened; undefined when there was nothing to lose.
 */
export function loseWrites(place: Place, loaded: Loaded, random: Random): string | undefined {
  switch (nextInt(random, 0, 2)) {
    case 0: {
      const count = nextInt(random, 1, MAX_LOST);
      place.records.takeBack(count);
      return `the last ${count} writes lost`;
    }
    case 1:
      return loseOne(place.records, random);
    default:
      return replaceBlock(place.records, loaded, random);
  }
}

/** One record is as it was before it was last written. */
function loseOne(records: Records, random: Random): string | undefined {
  const older = [...records.older()].filter(([key, value]) => isMissed(key, value, records.get(key))).sort();
  if (older.length === 0) return undefined;
  const [key, value] = pick(random, older);
  records.damage([{ key, value }]);
  return `the last write of record ${hex(key)} lost`;
}

/**
 * Whether a start has to miss the newer one. A cut that changes no record may lose its meta record: it is the same state
 * at an earlier index. And an empty block that superseded others tells nothing that was acknowledged.
 */
function isMissed(key: KeyText, older: Uint8Array | undefined, newer: Uint8Array | undefined): boolean {
  if (older !== undefined && newer !== undefined && Buffer.compare(older, newer) === 0) return false;
  if (key === HARD) return true;
  if (key.startsWith(LOG)) return newer === undefined || decodeBlock(newer, 'a block').entries.length > 0;
  return key.startsWith(TABLE) && key.charCodeAt(PART_OFFSET) !== 0;
}

/** Where a block was written lies another one, whole, of another leader's entries behind the same one. */
function replaceBlock(records: Records, { anchor, entries, hard }: Loaded, random: Random): string | undefined {
  const termAt = (index: number): number | undefined =>
    index === anchor.index ? anchor.term : entries[index - anchor.index - 1]?.term;
  const others: Change[] = [];
  for (const [key, value] of records.view) {
    const first = firstOfBlockKey(bytesOf(key));
    if (first === undefined || first <= anchor.index) continue;
    const block = decodeBlock(value, 'a block');
    const own = block.entries.map(({ term }) => term);
    const least = termAt(first - 1) ?? 0;
    // Not above the term of what follows: that would show without a look at the bytes.
    const most = entries.find(({ index }) => index >= first + own.length)?.term ?? hard.term;
    for (let term = least; own.length > 0 && term <= most; term++) {
      if (own.includes(term)) continue;
      const { value: other } = encodeBlock(
        first,
        block.before,
        block.entries.map((entry) => ({ ...entry, term })),
      );
      others.push({ key, value: other });
    }
  }
  if (others.length === 0) return undefined;
  const other = pick(
    random,
    others.sort((a, b) => (a.key < b.key ? -1 : 1)),
  );
  records.damage([other]);
  return `another block in the place of record ${hex(other.key)}`;
}

function hex(key: KeyText): string {
  return Buffer.from(key, 'latin1').toString('hex');
}
