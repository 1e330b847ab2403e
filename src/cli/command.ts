import type { Input } from './input.js';
import type { Io } from './io.js';

/** A flag of a command. */
export interface OptionSpec {
  /** Without dashes. */
  readonly flag: string;
  /** What stands behind it, e.g. `MS`; undefined for a flag without a value. */
  readonly value?: string;
  readonly about: string;
  /** May be given more than once. */
  readonly many?: boolean;
}

/** A command: what `--help` says of it, and what it does. */
export interface CommandSpec {
  /** E.g. `<domain> <token>`. */
  readonly operands: string;
  readonly options: readonly OptionSpec[];
  /** Further lines of `--help`. */
  readonly notes?: string;
  /** The exit codes, when they do not mean what they mean for the others; begins with `Exit codes:`. */
  readonly exitCodes?: string;
  /** Returns the exit code. Throws `UsageFaults` or `FencepostError`; whoever runs it prints them. */
  run(input: Input, io: Io): Promise<number>;
}
