/**
 * Every byte flipped, every file cut at every length, every file removed (P16, P17, F9): each is refused, or all that
 * was acknowledged is there. The oracle is the list of what was acknowledged, not what the code says of itself.
 */
import { isDeepStrictEqual } from 'node:util';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Loaded } from '../../src/replica/types.js';
import { maskedCrc } from '../../src/storage/leveldb-records.js';
import { DirectoryRefused } from '../../src/storage/refused.js';
import { openStore } from '../../src/storage/open.js';
import { EXPECTED, removePaths } from './fixtures.js';
import { ImageDirectory, removeImages, type Change, type Image } from './images.js';
import { memberImage, type MemberImage } from './member-image.js';

const isLog = (file: string) => file.startsWith('database/LOG');
/** In MARK only the two slots are read, up to the length that each begins with. */
const isPadding = (file: string, bytes: Buffer, at: number) =>
  file === 'MARK' && at % 4096 >= 2 + bytes.readUInt16BE(at < 4096 ? 0 : 4096);
const SPARSE = 'of LOG and of the padding in MARK, only every 64th byte';

/** What a start made of it. */
type Outcome = 'refused' | 'complete' | 'shorter';

async function start(path: string): Promise<Loaded | DirectoryRefused> {
  try {
    const store = await openStore(path, EXPECTED);
    await store.close();
    return store.loaded;
  } catch (error) {
    if (error instanceof DirectoryRefused) return error;
    throw error;
  }
}

/** What is wrong with what a start found, if anything. */
function fault(member: MemberImage, loaded: Loaded): string | undefined {
  const { entries, hard, state, unacknowledged } = member;
  const found = loaded.entries;
  const all = [...entries, ...unacknowledged.entries];
  if (found.length < entries.length)
    return `acknowledged entries are missing: ${found.length} of ${entries.length} are there`;
  if (!isDeepStrictEqual(found, all.slice(0, found.length))) return 'a wrong entry';
  if (!isDeepStrictEqual(loaded.hard, hard) && !isDeepStrictEqual(loaded.hard, unacknowledged.hard)) {
    return `a forgotten vote: ${JSON.stringify(loaded.hard)}`;
  }
  const { genesis, snapshot, summary, records } = loaded;
  return isDeepStrictEqual({ genesis, snapshot, summary, records }, state) ? undefined : 'another state';
}

/** Starts from the damaged directory; `twice`: what was refused must not be accepted the second time. */
async function judge(
  member: MemberImage,
  directory: ImageDirectory,
  what: string,
  change: Change,
  twice = true,
): Promise<Outcome> {
  directory.apply(change);
  let outcome: Outcome = 'refused';
  for (const time of twice ? ['first', 'second'] : ['only']) {
    const loaded = await start(directory.path);
    if (loaded instanceof DirectoryRefused) {
      expect(loaded.message, what).toMatch(
        /\. (Do not start this member|Correct the data directory|Name an empty|Form the)/,
      );
      // Nothing has changed, so nothing would be different.
      if (!directory.touched(change)) break;
      continue;
    }
    const wrong = fault(member, loaded);
    if (wrong !== undefined) throw new Error(`${what}, ${time} start: ${wrong}`);
    const all = member.entries.length + member.unacknowledged.entries.length;
    outcome = loaded.entries.length < all ? 'shorter' : 'complete';
  }
  directory.restore(change);
  return outcome;
}

class Tally {
  readonly #counts = new Map<string, Record<Outcome, number>>();

  add(file: string, outcome: Outcome): void {
    const counts = this.#counts.get(file) ?? { refused: 0, complete: 0, shorter: 0 };
    counts[outcome]++;
    this.#counts.set(file, counts);
  }

  print(title: string): void {
    const lines = [...this.#counts].map(
      ([file, { refused, complete, shorter }]) =>
        `  ${file.padEnd(26)} refused ${refused}, complete ${complete}, shorter ${shorter}`,
    );
    console.log([title, ...lines].join('\n'));
  }
}

/** One change. */
interface Case {
  readonly file: string;
  readonly what: string;
  readonly bytes: Buffer | undefined;
}

/** Judges all, several at a time: a start waits for LevelDB's thread most of the time. */
async function judgeAll(member: MemberImage, cases: Iterable<Case>): Promise<Tally> {
  const tally = new Tally();
  const iterator = cases[Symbol.iterator]();
  let judged = 0;
  const worker = async () => {
    const directory = new ImageDirectory(member.image);
    for (let next = iterator.next(); next.done !== true; next = iterator.next()) {
      const { file, what, bytes } = next.value;
      // A second start of every eighth is enough: what it can find depends on the kind of damage, not on the byte.
      const twice = judged++ % 8 === 0;
      tally.add(file, await judge(member, directory, `${file} ${what}`, new Map([[file, bytes]]), twice));
    }
  };
  await Promise.all([worker(), worker(), worker()]);
  return tally;
}

function* atEachByte(image: Image, make: (bytes: Buffer, at: number) => Omit<Case, 'file'>): Iterable<Case> {
  for (const [file, bytes] of image) {
    const sparse = (at: number) => isLog(file) || isPadding(file, bytes, at);
    for (let at = 0; at < bytes.length; at++) if (!sparse(at) || at % 64 === 0) yield { file, ...make(bytes, at) };
  }
}

const flipped = (bytes: Buffer, at: number): Buffer => {
  const copy = Buffer.from(bytes);
  copy.writeUInt8(copy.readUInt8(at) ^ (1 << (at % 8)), at);
  return copy;
};

let killed: MemberImage;
beforeAll(async () => {
  killed = await memberImage();
});
afterAll(async () => {
  removeImages();
  await removePaths();
});

describe('a member that was killed', () => {
  it('starts from an undamaged copy', async () => {
    expect([...killed.image.keys()].some((file) => file.endsWith('.ldb'))).toBe(true);
    expect(await judge(killed, new ImageDirectory(killed.image), 'undamaged', new Map())).toBe('complete');
  });

  it('with any byte changed is refused or complete', async () => {
    const cases = atEachByte(killed.image, (bytes, at) => ({
      what: `with byte ${at} changed`,
      bytes: flipped(bytes, at),
    }));
    (await judgeAll(killed, cases)).print(`one bit of each byte flipped (${SPARSE})`);
  }, 180_000);

  it('with any file cut at any length is refused, complete, or without what was never acknowledged', async () => {
    const cases = atEachByte(killed.image, (bytes, at) => ({
      what: `cut to ${at} bytes`,
      bytes: bytes.subarray(0, at),
    }));
    (await judgeAll(killed, cases)).print(`each file cut at each length (${SPARSE})`);
  }, 180_000);

  it('without any one of its files is refused or complete', async () => {
    for (const file of killed.image.keys()) {
      const outcome = await judge(
        killed,
        new ImageDirectory(killed.image),
        `${file} removed`,
        new Map([[file, undefined]]),
      );
      expect(outcome, file).toBe(isLog(file) || file === 'database/LOCK' ? 'complete' : 'refused');
    }
  });

  it('names the file and what is wrong', async () => {
    const messageWithout = async (file: string) => {
      const directory = new ImageDirectory(killed.image);
      directory.apply(new Map([[file, undefined]]));
      const found = await start(directory.path);
      return found instanceof DirectoryRefused ? found.message : 'accepted';
    };
    expect(await messageWithout('database/CURRENT')).toMatch(
      /database\/CURRENT: is missing\. Do not start this member/,
    );
    expect(await messageWithout('MARK')).toMatch(/MARK: is missing\./);
    expect(await messageWithout('IDENTITY')).toMatch(/IDENTITY: is missing beside a member's data\./);
  });
});

describe("LevelDB's own log", () => {
  it('that tells of skipped data, of this run or the one before, stops every start until somebody has looked', async () => {
    for (const name of ['database/LOG', 'database/LOG.old']) {
      for (const line of [
        '/data/database/000009.log: dropping 117 bytes; Corruption: checksum mismatch',
        '(ignoring error) /data/database/000009.log: dropping 9 bytes; Corruption: partial record without end(2)',
        'Compaction error: Corruption: bad entry in block',
      ]) {
        const directory = new ImageDirectory(killed.image);
        const change = new Map([
          [name, Buffer.concat([killed.image.get(name) ?? Buffer.alloc(0), Buffer.from(`${line}\n`)])],
        ]);
        directory.apply(change);
        for (let time = 0; time < 2; time++) {
          const found = await start(directory.path);
          expect(found instanceof DirectoryRefused ? found.message : '').toContain(
            `LevelDB skipped damaged data: "${line}"`,
          );
        }
        expect(directory.touched(change)).toBe(false);
      }
    }
  });

  it('may tell of a full disk: nothing is damaged by that', async () => {
    const directory = new ImageDirectory(killed.image);
    directory.apply(new Map([['database/LOG', Buffer.from('Compaction error: IO error: No space left on device\n')]]));
    expect(await start(directory.path)).not.toBeInstanceOf(DirectoryRefused);
  });
});

describe("a record of LevelDB's that is no part of a whole one", () => {
  it('is refused before LevelDB skips it', async () => {
    const name = [...killed.image.keys()].find((file) => file.endsWith('.log')) ?? '';
    const log = Buffer.from(killed.image.get(name) ?? []);
    // A middle part without a first one, with the right checksum.
    log.writeUInt8(3, 6);
    log.writeUInt32LE(maskedCrc(log.subarray(6, 7 + log.readUInt16LE(4))), 0);
    const directory = new ImageDirectory(killed.image);
    const change = new Map([[name, log]]);
    directory.apply(change);
    const found = await start(directory.path);
    expect(found instanceof DirectoryRefused ? found.message : '').toContain(
      'the record at 0 is no part of a whole one',
    );
    expect(directory.touched(change)).toBe(false);
  });
});

describe('a member that lost power', () => {
  /**
   * MARK is as old as a second then. Damage in the same moment to what was written after it is the one thing that this
   * node alone cannot tell (design 6); everything before it must be safe all the same.
   */
  it('may have lost what was written after MARK was last synced, to damage in that moment, and nothing else', async () => {
    const name = [...killed.image.keys()].find((file) => file.endsWith('.log')) ?? '';
    const image = new Map([...killed.image, ['MARK', killed.oldMark] as const]);
    const log = image.get(name) ?? Buffer.alloc(0);
    const directory = new ImageDirectory(image);
    const lost = { entries: 0, votes: 0, refused: 0, complete: 0 };
    for (let length = 0; length <= log.length; length += 2) {
      const change = new Map([[name, log.subarray(0, length)]]);
      directory.apply(change);
      const loaded = await start(directory.path);
      if (loaded instanceof DirectoryRefused) lost.refused++;
      else {
        const last = loaded.entries.at(-1)?.index ?? loaded.anchor.index;
        expect(last).toBeGreaterThanOrEqual(killed.oldLast);
        expect(loaded.entries).toEqual(
          [...killed.entries, ...killed.unacknowledged.entries].slice(0, loaded.entries.length),
        );
        expect(loaded.hard.term).toBeGreaterThanOrEqual(killed.oldHard.term);
        if (loaded.hard.term === killed.oldHard.term) expect(loaded.hard).toEqual(killed.oldHard);
        if (loaded.entries.length < killed.entries.length) lost.entries++;
        else if (loaded.hard.term < killed.hard.term) lost.votes++;
        else lost.complete++;
      }
      directory.restore(change);
    }
    console.log(
      `write-ahead log cut at every second length, MARK 2 acknowledged writes old: ${lost.refused} refused, ${lost.complete} complete; ` +
        `undetected: ${lost.entries} lost acknowledged entries and ${lost.votes} a vote, all written after MARK`,
    );
    expect(lost.entries).toBeGreaterThan(0);
    expect(lost.refused).toBeGreaterThan(0);
  }, 120_000);

  it('starts when nothing is damaged, however old MARK is', async () => {
    const directory = new ImageDirectory(new Map([...killed.image, ['MARK', killed.oldMark] as const]));
    const loaded = await start(directory.path);
    expect(loaded instanceof DirectoryRefused ? loaded.message : loaded.entries).toEqual([
      ...killed.entries,
      ...killed.unacknowledged.entries,
    ]);
  });
});
