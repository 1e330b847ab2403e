/** What counts as having noticed that a rule is gone. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { RunResult } from '../result.js';
import { root } from '../runner/bundle.js';
import { patchedFunction } from '../runner/patch.js';
import { patchesOf } from './switch.js';
import type { Switch } from './switch.js';

/** Failures of a run itself, not of a rule: they are no catch. */
const NO_CATCH = ['HUNG', 'DIED', 'BROKEN'];

/** Names of the functions that a switch changes, as stack traces show them. */
export function patchedFunctions(each: Switch): ReadonlySet<string> {
  const names = patchesOf(each).map((patch) => patchedFunction(readFileSync(join(root, patch.file), 'utf8'), patch));
  return new Set(names.filter((name) => name !== undefined));
}

/**
 * What caught the switch, for the table; undefined when `result` is no catch. A check or the reference relation always
 * is. An assertion of the product is one only in another function than the changed one: what a patch breaks beside itself
 * would not be there in a real mistake.
 */
export function catchOf(
  result: RunResult,
  patched: ReadonlySet<string>,
  judges: 'all' | 'checks' | 'relation',
): string | undefined {
  const { failure } = result;
  if (failure === undefined || NO_CATCH.includes(failure.code)) return undefined;
  if (judges === 'relation') return failure.by === 'relation' ? `relation ${failure.code}` : undefined;
  if (failure.by !== 'assertion') return failure.by === 'check' ? failure.code : `relation ${failure.code}`;
  const where = thrownIn(failure.text);
  return where === undefined || patched.has(where) ? undefined : `assertion in ${where}`;
}

/** The function in which an error with this stack was thrown; undefined when the text has no stack. */
export function thrownIn(stack: string): string | undefined {
  for (const [, name, place] of stack.matchAll(/^\s+at (?:async )?(?:new )?([\w.#$<>]+)(?: \[as \w+\])? \((.*)\)$/gm)) {
    if (name === undefined || place === undefined || /\/base\/assert\.[jt]s/.test(place)) continue;
    // The bundler numbers names that two files share; methods are shown behind their class.
    const bare = name.slice(name.lastIndexOf('.') + 1).replace(/\$\d+$/, '');
    if (bare !== 'assert') return bare;
  }
  return undefined;
}
