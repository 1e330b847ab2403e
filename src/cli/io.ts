import type { Cluster } from './cluster.js';

/** How a command ends; what `$?` shows. Printed by `--help`. */
export const EXIT = {
  /** It was done. */
  ok: 0,
  /** Not granted, or not live. */
  no: 1,
  /** The command line or the configuration cannot be used; nothing was tried. */
  usage: 2,
  /** The cluster did not answer, or refused with an error. */
  failed: 3,
} as const;

/** What a command sees of the world; tests give it another one. */
export interface Io {
  /** Writes `text` and a line end to standard output. */
  out(text: string): void;
  /** Writes `text` and a line end to standard error. */
  err(text: string): void;
  /** Whether standard output shows colours: a terminal, and nobody has set NO_COLOR. */
  readonly colour: boolean;
  /** The current folder: relative paths begin there, and drivers are looked for there. */
  readonly folder: string;
  readonly environment: Readonly<Record<string, string | undefined>>;
  /** Opens a way to the cluster; whoever calls closes it. */
  connect(endpoints: readonly string[], timeoutMs: number): Cluster;
}
