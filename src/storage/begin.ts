/**
 * Makes a prepared directory a member's: database with Genesis and an empty table, then MARK, then IDENTITY. Until the
 * last rename the directory is `new`, has promised nothing, and what is half built in it is thrown away (S2.3).
 */
import { ZERO_DIGEST } from '../base/digest.js';
import type { DirectoryId } from '../base/ids.js';
import { ZERO_REVISION } from '../base/revision.js';
import type { Member } from '../raft/types.js';
import type { Genesis } from '../replica/types.js';
import { join } from 'node:path';
import { GENESIS_KEY, HARD_KEY, metaKey, POINTER_KEY } from '../wire/disk.js';
import { encodeIdentity } from '../wire/disk-identity.js';
import { encodeCutMeta, encodeHardState, encodePointer, sealGenesis } from '../wire/disk-records.js';
import type { Databases, Operation } from './database.js';
import { chainStart } from './disk-state.js';
import { DATABASE, IDENTITY_FILE, inspectDirectory, MARK_FILE } from './directory.js';
import { replaceFile, type Files } from './files.js';
import { createMark } from './mark.js';
import { nodeStorage, type StoragePorts } from './ports.js';
import { DirectoryRefused } from './refused.js';

const FIRST_WRITE = 1;
const FIRST_PREFIX = 1;
const NOT_LISTED = 'The cluster formed without this node: have it added as a new member';

/**
 * Accepts `genesis` for the prepared directory with the id `directory`. Durable when it resolves; the directory can
 * then be opened. Throws {@link DirectoryRefused} unless the record lists it, and it is `new` and has that id.
 */
export async function storeGenesis(
  path: string,
  genesis: Genesis,
  directory: DirectoryId,
  { files, databases }: Pick<StoragePorts, 'files' | 'databases'> = nodeStorage,
): Promise<void> {
  const { cluster, incarnation } = genesis;
  const self = genesis.members.find((member) => member.directory === directory);
  if (self === undefined) {
    throw new DirectoryRefused(path, `is directory ${directory}, which the Genesis record does not list`, NOT_LISTED);
  }
  const { node } = self;
  await checkNew(path, cluster, self, files);
  const database = join(path, DATABASE);
  await files.remove(database);
  await files.remove(join(path, MARK_FILE));
  await files.syncDirectory(path);
  await writeFirstState(databases, database, genesis);
  await files.syncDirectory(database);
  await files.syncDirectory(path);
  const anchor = anchorOf(genesis);
  await createMark(files, path, {
    write: FIRST_WRITE,
    term: genesis.startTerm,
    vote: undefined,
    index: anchor.index,
    indexTerm: anchor.term,
    chain: anchor.chain,
  });
  await replaceFile(
    files,
    path,
    IDENTITY_FILE,
    encodeIdentity({ type: 'member', cluster, node, directory, incarnation }),
  );
}

async function checkNew(path: string, cluster: string, { node, directory }: Member, files: Files): Promise<void> {
  const found = await inspectDirectory(path, { cluster, node }, files);
  if (found.type === 'new' && found.directory === directory) return;
  throw new DirectoryRefused(
    path,
    found.type === 'member' ? 'has accepted a Genesis record already' : `is not the prepared directory ${directory}`,
    'A directory accepts one Genesis record in its life: see that no other process uses it, and start again',
  );
}

async function writeFirstState(databases: Databases, location: string, genesis: Genesis): Promise<void> {
  const { incarnation, history, startTerm } = genesis;
  const configuration = { voters: genesis.members, outgoing: [], learners: [] };
  const meta = {
    prefix: FIRST_PREFIX,
    snapshot: { index: history.start, term: startTerm, configuration, configurationIndex: history.start },
    incarnation,
    history,
    anchor: anchorOf(genesis),
    count: 0,
    sum: ZERO_DIGEST,
    summary: { forgotten: ZERO_REVISION, holding: genesis.holdMs > 0, limits: genesis.limits },
  };
  const operations: Operation[] = [
    { type: 'put', key: GENESIS_KEY, value: sealGenesis(genesis) },
    { type: 'put', key: HARD_KEY, value: encodeHardState({ write: FIRST_WRITE, term: startTerm, vote: undefined }) },
    { type: 'put', key: POINTER_KEY, value: encodePointer(FIRST_PREFIX) },
    { type: 'put', key: metaKey(FIRST_PREFIX), value: encodeCutMeta(meta) },
  ];
  const database = await databases.create(location);
  try {
    await database.batch(operations, { sync: true });
  } finally {
    await database.close();
  }
}

function anchorOf(genesis: Genesis): ReturnType<typeof chainStart> {
  return chainStart(genesis, genesis.history.start, genesis.startTerm);
}
