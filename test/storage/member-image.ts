/** A small member, stopped at a known moment, with all that it acknowledged. */
import type { Domain } from '../../src/base/ids.js';
import type { Entry, HardState } from '../../src/raft/types.js';
import type { Loaded } from '../../src/replica/types.js';
import { storeGenesis } from '../../src/storage/begin.js';
import { prepareDirectory } from '../../src/storage/directory.js';
import { nodeFiles, type Files } from '../../src/storage/files.js';
import { openStore } from '../../src/storage/open.js';
import { nodeStorage } from '../../src/storage/ports.js';
import {
  B,
  C,
  cutAt,
  domainRecord,
  entries,
  EXPECTED,
  finishedRecord,
  freshPath,
  genesisFor,
  hard,
  logWrite,
  Reports,
} from './fixtures.js';
import { readImage, type Image } from './images.js';

/** See {@link memberImage}. */
export interface MemberImage {
  readonly image: Image;
  /** MARK as it was a few writes earlier: what power loss may leave. */
  readonly oldMark: Buffer;
  /** What `oldMark` knows of. */
  readonly oldHard: HardState;
  readonly oldLast: number;
  /** Acknowledged. */
  readonly entries: readonly Entry[];
  readonly hard: HardState;
  readonly state: Pick<Loaded, 'genesis' | 'snapshot' | 'summary' | 'records'>;
  /** On the disk, but the process was killed before it knew: may be there or not. */
  readonly unacknowledged: { readonly entries: readonly Entry[]; readonly hard: HardState };
}

/**
 * A member whose database has a table file, superseded entries, two cuts, votes, and a write that reached the database
 * but not MARK. `stopped`: without that write, after a clean stop.
 */
export async function memberImage(stopped = false): Promise<MemberImage> {
  const path = await freshPath();
  const directory = await prepareDirectory(path, EXPECTED);
  const genesis = genesisFor(directory);
  await storeGenesis(path, genesis, directory);

  let left: Image | undefined;
  let dying = false;
  const files: Files = {
    ...nodeFiles,
    async openInPlace(name) {
      const file = await nodeFiles.openInPlace(name);
      return {
        ...file,
        async write(bytes, position) {
          if (!dying) return file.write(bytes, position);
          left = readImage(path);
          throw new Error('killed here');
        },
      };
    },
  };

  const first = await openStore(path, EXPECTED);
  const earlier = new Reports();
  first.listen(earlier);
  first.write(logWrite(1, 1, entries(1, 6, 1), { hard: hard(1, B) }));
  await earlier.until('written 1');
  first.cut(cutAt(4, 1, { put: [domainRecord('x', 2), domainRecord('y', 3), finishedRecord(4)] }));
  first.write(logWrite(2, 2, entries(5, 8, 2), { cutFrom: 5 }));
  await earlier.until('written 2');
  await first.close();

  const store = await openStore(path, EXPECTED, { ...nodeStorage, files });
  const reports = new Reports();
  store.listen(reports);
  store.write(logWrite(1, 3, entries(9, 10, 3), { hard: hard(3, B) }));
  await reports.until('written 1');
  store.cut(
    cutAt(9, 3, { put: [domainRecord('z', 7)], remove: [{ type: 'domain', domain: 'y' as Domain }], keepFrom: 5 }),
  );
  await reports.until('cut 9');
  const oldMark = readImage(path).get('MARK');
  if (oldMark === undefined) throw new Error('no MARK');
  store.write(logWrite(2, 4, entries(11, 12, 4), { hard: hard(4) }));
  await reports.until('written 2');
  store.write(logWrite(3, 5, [], { hard: hard(5, C) }));
  await reports.until('written 3');
  const unacknowledged = { entries: entries(13, 14, 6), hard: hard(6, B) };
  if (!stopped) {
    dying = true;
    store.write({ ...logWrite(4, 6, unacknowledged.entries), hard: unacknowledged.hard });
    await reports.until('written 4').catch(() => undefined);
    dying = false;
  }
  await store.close();
  left ??= readImage(path);
  return {
    image: left,
    oldMark,
    oldHard: hard(3, B),
    oldLast: 10,
    entries: [...entries(5, 8, 2), ...entries(9, 10, 3), ...entries(11, 12, 4)],
    hard: hard(5, C),
    state: {
      genesis,
      snapshot: cutAt(9, 3).meta,
      summary: store.loaded.summary,
      records: [domainRecord('x', 2), domainRecord('z', 7), finishedRecord(4)],
    },
    unacknowledged: stopped ? { entries: [], hard: hard(5, C) } : unacknowledged,
  };
}
