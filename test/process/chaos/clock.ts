/** The one clock of a chaos run: CLOCK_MONOTONIC is the same for all processes of a machine. */

/** Milliseconds, with fractions; comparable between processes. */
export function now(): number {
  return Number(process.hrtime.bigint()) / 1e6;
}
