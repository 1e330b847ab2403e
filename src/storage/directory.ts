/** Whose directory is this, and may this node use it? Judged before anything in it is opened. */
import { join } from 'node:path';
import type { DirectoryId, NodeId } from '../base/ids.js';
import { CorruptBytes } from '../wire/corrupt.js';
import { decodeIdentity, encodeIdentity, type Identity } from '../wire/disk-identity.js';
import { nodeFiles, replaceFile, type Files } from './files.js';
import { nodeStorage, type StoragePorts } from './ports.js';
import { DirectoryRefused, REPLACE_MEMBER, WRONG_DIRECTORY } from './refused.js';

/** Name of the identity file in a data directory. */
export const IDENTITY_FILE = 'IDENTITY';
/** Name of the file with the mark. */
export const MARK_FILE = 'MARK';
/** Name of the LevelDB database. */
export const DATABASE = 'database';

/** What the configuration says. */
export interface Expected {
  readonly cluster: string;
  readonly node: NodeId;
}

/** The identity of a directory that holds a member's votes and log. */
export type MemberIdentity = Extract<Identity, { readonly type: 'member' }>;

/** What a data directory is. */
export type DirectoryState =
  /** Nothing in it, or it does not exist. */
  | { readonly type: 'empty' }
  /** Prepared, has promised nothing: may form or join, and may be deleted. */
  | { readonly type: 'new'; readonly directory: DirectoryId }
  /** Holds a member. */
  | { readonly type: 'member'; readonly identity: MemberIdentity };

/** May lie in an empty directory: what file systems put there, and our own half-written first file. */
const HARMLESS = new Set(['lost+found', `${IDENTITY_FILE}.tmp`]);

/**
 * What the directory is. Throws {@link DirectoryRefused} when it belongs to another node or cluster, when it is not a
 * data directory, or when a member's database or mark is missing.
 */
export async function inspectDirectory(
  path: string,
  expected: Expected,
  files: Files = nodeFiles,
): Promise<DirectoryState> {
  const names = ((await files.list(path)) ?? []).filter((name) => !HARMLESS.has(name));
  if (names.length === 0) return { type: 'empty' };
  const identity = await readIdentity(path, names, files);
  checkOwner(path, identity, expected);
  if (identity.type === 'new') return { type: 'new', directory: identity.directory };
  await checkMemberFiles(path, names, files);
  return { type: 'member', identity };
}

/** Gives an empty directory its identity, as `new`; returns that of a `new` one unchanged. Throws {@link DirectoryRefused}. */
export async function prepareDirectory(
  path: string,
  expected: Expected,
  { files, newDirectoryId }: Pick<StoragePorts, 'files' | 'newDirectoryId'> = nodeStorage,
): Promise<DirectoryId> {
  const found = await inspectDirectory(path, expected, files);
  switch (found.type) {
    case 'new':
      // The process that wrote it may have been killed before its name was durable.
      await files.syncDirectory(path);
      return found.directory;
    case 'member':
      throw new DirectoryRefused(
        path,
        `holds a member of cluster "${found.identity.cluster}" already`,
        'Start it as it is, or name another directory',
      );
    case 'empty': {
      const directory = newDirectoryId();
      await files.makeDirectory(path);
      await replaceFile(files, path, IDENTITY_FILE, encodeIdentity({ type: 'new', ...expected, directory }));
      return directory;
    }
  }
}

async function readIdentity(path: string, names: readonly string[], files: Files): Promise<Identity> {
  const file = join(path, IDENTITY_FILE);
  const bytes = await files.read(file);
  if (bytes === undefined) {
    if (names.includes(DATABASE) || names.includes(MARK_FILE)) {
      throw new DirectoryRefused(file, "is missing beside a member's data", REPLACE_MEMBER);
    }
    throw new DirectoryRefused(
      path,
      `is not empty (it contains ${names.slice(0, 3).join(', ')}) and not a data directory of Fencepost`,
      'Name an empty directory, or one that does not exist',
    );
  }
  try {
    return decodeIdentity(bytes);
  } catch (error) {
    if (!(error instanceof CorruptBytes)) throw error;
    throw new DirectoryRefused(file, error.message, REPLACE_MEMBER, { cause: error });
  }
}

function checkOwner(path: string, identity: Identity, expected: Expected): void {
  const file = join(path, IDENTITY_FILE);
  if (identity.cluster !== expected.cluster) {
    throw new DirectoryRefused(
      file,
      `belongs to cluster "${identity.cluster}", and this node is configured for cluster "${expected.cluster}"`,
      WRONG_DIRECTORY,
    );
  }
  if (identity.node !== expected.node) {
    throw new DirectoryRefused(
      file,
      `belongs to node "${identity.node}", and this node is configured as "${expected.node}"`,
      WRONG_DIRECTORY,
    );
  }
}

async function checkMemberFiles(path: string, names: readonly string[], files: Files): Promise<void> {
  for (const name of [DATABASE, MARK_FILE]) {
    if (!names.includes(name)) throw new DirectoryRefused(join(path, name), 'is missing', REPLACE_MEMBER);
  }
  const database = join(path, DATABASE);
  if (!(await files.list(database))?.includes('CURRENT')) {
    throw new DirectoryRefused(join(database, 'CURRENT'), 'is missing', REPLACE_MEMBER);
  }
}
