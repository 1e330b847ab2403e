/**
 * Opens a member's directory. Everything is checked before anything is used or removed; what fails a check is refused
 * and left as it is (design 6). What no check of one node alone can tell: damage to the writes of the last second before
 * a *power loss*, because only a killed process leaves MARK exact.
 */
import { join } from 'node:path';
import type { Store } from '../replica/ports.js';
import { CorruptBytes } from '../wire/corrupt.js';
import { allTables, blockRange, GENESIS_KEY, HARD_KEY, otherPrefixes, prefixOf } from '../wire/disk.js';
import type { NumberedMark } from '../wire/disk-mark.js';
import {
  decodeHardState,
  unsealGenesis,
  type ChainPosition,
  type CutMeta,
  type NumberedHardState,
} from '../wire/disk-records.js';
import type { Genesis } from '../replica/types.js';
import { plainBytes, refusing, type Database } from './database.js';
import { DATABASE, inspectDirectory, MARK_FILE, type Expected, type MemberIdentity } from './directory.js';
import type { DiskState } from './disk-state.js';
import { loadLog, type LoadedLog } from './load-log.js';
import { loadTable, required, type LoadedTable } from './load-table.js';
import { MarkFile, readMark } from './mark.js';
import { nodeStorage, type StoragePorts } from './ports.js';
import { WriteQueue } from './queue.js';
import { DirectoryRefused, REPLACE_MEMBER } from './refused.js';
import { LevelStore } from './store.js';

interface Found {
  readonly genesis: Genesis;
  readonly hard: NumberedHardState;
  readonly table: LoadedTable;
  readonly log: LoadedLog;
}

/**
 * The store of the member in `path`. Throws {@link DirectoryRefused} when the directory is not a member's, belongs to
 * somebody else, is open in another process, or has lost anything that was acknowledged.
 */
export async function openStore(
  path: string,
  expected: Expected,
  ports: Omit<StoragePorts, 'newDirectoryId'> = nodeStorage,
): Promise<Store> {
  const { files, databases } = ports;
  const state = await inspectDirectory(path, expected, files);
  if (state.type !== 'member') {
    throw new DirectoryRefused(path, 'holds no member', 'Form the cluster, or have this node added, first');
  }
  // A killed process may have left the name of IDENTITY unsynced: a power loss would make a member, and all that it is
  // going to promise, `new` again.
  await files.syncDirectory(path);
  const location = join(path, DATABASE);
  const mark = await refusing(join(path, MARK_FILE), () => readMark(files, path));
  if (mark === undefined) throw new DirectoryRefused(join(path, MARK_FILE), 'is missing', REPLACE_MEMBER);
  const database = await databases.open(location, files);
  try {
    const found = await refusing(location, () => load(database, mark, state.identity));
    const nextPrefix = await refusing(location, () => unusedPrefix(database));
    await refusing(location, () => removeRubbish(database, found));
    return await assemble(path, ports, database, { mark, nextPrefix, ...found });
  } catch (error) {
    await database.close();
    throw error;
  }
}

async function load(database: Database, mark: NumberedMark, identity: MemberIdentity): Promise<Found> {
  const genesis = unsealGenesis(await required(database, GENESIS_KEY, 'the Genesis record'));
  if (genesis.incarnation !== identity.incarnation || genesis.cluster !== identity.cluster) {
    throw new CorruptBytes('the Genesis record', 'is not that of IDENTITY');
  }
  const hard = decodeHardState(await required(database, HARD_KEY, 'the hard-state record'));
  checkHardState(hard, mark);
  const table = await loadTable(database);
  checkCut(table.meta, genesis);
  const log = await loadLog(database, table.meta.anchor);
  checkApplied(table.meta, log);
  checkMark(mark, table.meta.snapshot.index, log);
  const { last } = log.index;
  if (hard.term < last.term)
    throw new CorruptBytes('the hard-state record', `term ${hard.term} is below the log's ${last.term}`);
  return { genesis, hard, table, log };
}

/** The vote that was acknowledged must not be forgotten (F9.2). */
function checkHardState(hard: NumberedHardState, mark: NumberedMark): void {
  const what = 'the hard-state record';
  if (hard.write < mark.write)
    throw new CorruptBytes(what, `is that of write ${hard.write}; MARK knows of write ${mark.write}`);
  if (hard.term < mark.term) throw new CorruptBytes(what, `has term ${hard.term}; MARK knows of term ${mark.term}`);
  if (hard.write === mark.write && hard.term !== mark.term) {
    throw new CorruptBytes(what, `and MARK give different terms for write ${hard.write}`);
  }
  const sameVote = hard.vote?.node === mark.vote?.node && hard.vote?.directory === mark.vote?.directory;
  if (!sameVote && hard.term === mark.term && (mark.vote !== undefined || hard.write === mark.write)) {
    throw new CorruptBytes(what, `and MARK give different votes in term ${hard.term}`);
  }
}

function checkCut({ incarnation, history, snapshot, anchor }: CutMeta, genesis: Genesis): void {
  const what = "the meta record of the state's cut";
  const { base, start } = genesis.history;
  if (incarnation !== genesis.incarnation || history.base !== base || history.start !== start) {
    throw new CorruptBytes(what, 'is not of the history that Genesis began');
  }
  if (snapshot.index < start || anchor.index > snapshot.index || snapshot.configurationIndex > snapshot.index) {
    throw new CorruptBytes(what, 'its positions contradict each other');
  }
}

/** The table may not be ahead of the log: a cut is written after the block that it needs (S2.4). */
function checkApplied({ snapshot }: CutMeta, { index }: LoadedLog): void {
  const applied = index.at(snapshot.index);
  if (applied === undefined) {
    throw new CorruptBytes(
      'the log',
      `ends at ${index.last.index}, before the state table, which is at ${snapshot.index}`,
    );
  }
  if (applied.term !== snapshot.term)
    throw new CorruptBytes('the log', `has another entry ${snapshot.index} than the table`);
}

/** The log must contain what was durable when MARK was written, not merely reach as far (F9.1). */
function checkMark(mark: NumberedMark, applied: number, { index }: LoadedLog): void {
  if (mark.index <= applied) return;
  const found: ChainPosition | undefined = index.at(mark.index);
  if (found === undefined) {
    throw new CorruptBytes(
      'the log',
      `ends at ${index.last.index}; MARK knows of entry ${mark.index}, which was durable`,
    );
  }
  if (found.term !== mark.indexTerm || found.chain !== mark.chain) {
    throw new CorruptBytes('the log', `has another entry ${mark.index} than MARK knows of`);
  }
}

/**
 * Above every table that is there, rubbish too: its removal is not synced, so a power loss may bring it back, and that
 * among the records of a table that was staged under its prefix meanwhile.
 */
async function unusedPrefix(database: Database): Promise<number> {
  const [last] = await database.keys({ ...allTables(), limit: 1, reverse: true }).all();
  return last === undefined ? 0 : prefixOf(plainBytes(last)) + 1;
}

/** Blocks below the anchor and tables out of use: left by a crash, or brought back by one (S2.2). */
async function removeRubbish(database: Database, { table }: Found): Promise<void> {
  const { prefix, anchor } = table.meta;
  for (const range of [blockRange(anchor.index + 1), ...otherPrefixes(prefix)]) await database.clear(range);
}

async function assemble(
  path: string,
  ports: Pick<StoragePorts, 'files' | 'after'>,
  database: Database,
  found: Found & { readonly mark: NumberedMark; readonly nextPrefix: number },
): Promise<Store> {
  const { mark, nextPrefix, genesis, hard, table, log } = found;
  const { prefix, snapshot, summary } = table.meta;
  const disk: DiskState = {
    database,
    mark: await MarkFile.open(ports, path, mark, (error) => {
      queue.fail(error);
    }),
    genesis,
    log: log.index,
    hard: { term: hard.term, vote: hard.vote },
    write: hard.write,
    table: { prefix, sum: table.sum, snapshot },
    staging: undefined,
    nextPrefix,
  };
  const queue = new WriteQueue(disk);
  const { index, term } = log.index.anchor;
  return new LevelStore(disk, queue, {
    genesis,
    hard: disk.hard,
    anchor: { index, term },
    entries: log.entries,
    snapshot,
    summary,
    records: table.records,
  });
}
