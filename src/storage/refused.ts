/**
 * A data directory that must not be used. Nothing has been repaired or deleted; the process ends and a person decides.
 * The message names the file, what is wrong with it, and what to do next.
 */
export class DirectoryRefused extends Error {
  override readonly name = 'DirectoryRefused';
  /** The file or directory that is wrong. */
  readonly file: string;

  constructor(file: string, problem: string, next: string, options?: ErrorOptions) {
    super(`${file}: ${problem}. ${next}`, options);
    this.file = file;
  }
}

/** For damage: what holds this member's votes and log can no longer be trusted. */
export const REPLACE_MEMBER =
  'Do not start this member from this directory again: keep the directory for examination. The other members go on while they are a majority; have this member replaced (cluster/README.md, "A disk is lost")';

/** For a directory that belongs to somebody else. */
export const WRONG_DIRECTORY = 'Correct the data directory, the node id or the cluster name in the configuration';

/** For a disk that does not take or give what is asked of it. */
export const MAKE_ROOM =
  'See that the file system has room and that this user may read and write it, then start again: nothing is lost by that';
