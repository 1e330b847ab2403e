import type { FencepostError } from '../client/errors.js';
import type { ResourceError } from './fence/resource-error.js';
import { EXIT, type Io } from './io.js';
import { toned } from './table.js';

/** What a command adds to an error. */
export interface More {
  /** For `--json`, beside the error. */
  readonly json: Readonly<Record<string, unknown>>;
  /** For people, behind the error, when the outcome is unknown. */
  readonly ifUnknown: string;
}

/** Prints why `command` failed, and returns the exit code. */
export function printFailure(
  io: Io,
  json: boolean,
  command: string,
  error: FencepostError | ResourceError,
  more?: More,
): number {
  const { code, message, outcome } = error;
  if (json) io.out(JSON.stringify({ error: { code, message, outcome }, ...more?.json }));
  else {
    io.err(`${toned(code, 'bad', io.colour)}: ${command}: ${message}`);
    if (more !== undefined && outcome === 'unknown') io.err(more.ifUnknown);
  }
  return code === 'INVALID_REQUEST' || code === 'INVALID_OPTIONS' ? EXIT.usage : EXIT.failed;
}
