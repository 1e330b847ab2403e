import type { Io } from './io.js';
import { type Cell, pairs } from './table.js';

/** The one result of a command: as JSON for a program, as lines of `name  value` for people. */
export function print(io: Io, json: boolean, value: unknown, rows: readonly (readonly [string, Cell])[]): void {
  io.out(json ? JSON.stringify(value) : pairs(rows, io.colour));
}
