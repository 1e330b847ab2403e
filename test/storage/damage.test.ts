/**
 * Every byte flipped, every file cut at every length, every file removed (P16, P17, F9): each is refused, or all that
 * was acknowledged is there. The oracle is the list of what was acknowledged, not what the code says of itself.
 */
import { isDeepStrictEqual } from 'node:util';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Loaded } from '../../src/replica/types.js';
import { DirectoryRefused } from '../../src/storage/refused.js';
import { openStore } from '../../src/storage/open.js';
import { EXPECTED, removePaths } from './fixtures.js';
import { removeImages, writeImage, type Image } from './images.js';
import { memberImage, type MemberImage } from './member-image.js';

/** MARK's slots are 256 bytes at 0 and 4096; nothing is ever written or read between them. */
const isGap = (file: string, at: number) => file === 'MARK' && at >= 256 && at < 4096;
const isLog = (file: string) => file.startsWith('database/LOG');

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

/** Starts from a damaged copy, twice: what was refused must not be accepted the second time. */
async function judge(
  member: MemberImage,
  what: string,
  change: ReadonlyMap<string, Buffer | undefined>,
): Promise<Outcome> {
  const path = writeImage(member.image, change);
  let outcome: Outcome = 'refused';
  for (const time of ['first', 'second']) {
    const loaded = await start(path);
    if (loaded instanceof DirectoryRefused) {
      expect(loaded.message, what).toMatch(
        /\. (Do not start this member|Correct the data directory|Name an empty|Form the)/,
      );
      continue;
    }
    const wrong = fault(member, loaded);
    if (wrong !== undefined) throw new Error(`${what}, ${time} start: ${wrong}`);
    outcome =
      loaded.entries.length < member.entries.length + member.unacknowledged.entries.length ? 'shorter' : 'complete';
  }
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

/** Several at a time: a start waits for LevelDB's thread most of the time. */
async function each<T>(cases: Iterable<T>, judgeCase: (item: T) => Promise<void>): Promise<void> {
  const iterator = cases[Symbol.iterator]();
  const worker = async () => {
    for (let next = iterator.next(); next.done !== true; next = iterator.next()) await judgeCase(next.value);
  };
  await Promise.all([worker(), worker(), worker(), worker()]);
}

function* positions(
  image: Image,
  wanted: (file: string, at: number) => boolean,
): Iterable<{ file: string; bytes: Buffer; at: number }> {
  for (const [file, bytes] of image)
    for (let at = 0; at < bytes.length; at++) if (wanted(file, at)) yield { file, bytes, at };
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
    expect(await judge(killed, 'undamaged', new Map())).toBe('complete');
  });

  it('with any bit of any byte flipped is refused or complete', async () => {
    const tally = new Tally();
    await each(
      positions(killed.image, (file, at) => (!isGap(file, at) && !isLog(file)) || at % 64 === 0),
      async ({ file, bytes, at }) => {
        tally.add(file, await judge(killed, `${file} flipped at ${at}`, new Map([[file, flipped(bytes, at)]])));
      },
    );
    tally.print('one bit of each byte flipped (every 64th byte of LOG and of the gap in MARK)');
  });

  it('with any file cut at any length is refused or complete', async () => {
    const tally = new Tally();
    await each(
      positions(killed.image, (file, at) => (!isGap(file, at) && !isLog(file)) || at % 64 === 0),
      async ({ file, bytes, at }) => {
        tally.add(file, await judge(killed, `${file} cut to ${at}`, new Map([[file, bytes.subarray(0, at)]])));
      },
    );
    tally.print('each file cut at each length (every 64th length in LOG and in the gap in MARK)');
  });

  it('without any one of its files is refused or complete', async () => {
    const tally = new Tally();
    for (const file of killed.image.keys()) {
      const outcome = await judge(killed, `${file} removed`, new Map([[file, undefined]]));
      tally.add(file, outcome);
      const needed = !isLog(file) && file !== 'database/LOCK';
      expect(outcome === 'refused', file).toBe(needed);
    }
    tally.print('each file removed');
  });

  it('names the file and what is wrong', async () => {
    const messageWithout = async (file: string) => {
      const found = await start(writeImage(killed.image, new Map([[file, undefined]])));
      return found instanceof DirectoryRefused ? found.message : 'accepted';
    };
    expect(await messageWithout('database/CURRENT')).toMatch(
      /database\/CURRENT: is missing\. Do not start this member/,
    );
    expect(await messageWithout('MARK')).toMatch(/MARK: is missing\./);
    expect(await messageWithout('IDENTITY')).toMatch(/IDENTITY: is missing beside a member's data\./);
  });
});
