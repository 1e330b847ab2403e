/** Runs the model checker: Spin makes a C program of the model, and that program visits every state within the bounds. */
import { execFile } from 'node:child_process';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { promisify } from 'node:util';

const run = promisify(execFile);
const MODEL = resolve(import.meta.dirname, 'lease.pml');

/** What is given to the model: its bounds, and switches by name. */
export type Defines = Readonly<Record<string, number | true>>;

/** What a search found. */
export interface Search {
  /** The invariant that fails, or undefined when none does in any state. */
  readonly violated: string | undefined;
  /** Different states visited. */
  readonly states: number;
  /** Steps of the longest path. */
  readonly depth: number;
}

/** What is missing to run the model on this machine, or undefined. */
export async function missingTool(): Promise<string | undefined> {
  for (const [tool, version] of [
    ['spin', '-V'],
    ['gcc', '--version'],
  ] as const) {
    try {
      await run(tool, [version]);
    } catch {
      return tool;
    }
  }
  return undefined;
}

/**
 * Searches all states of the model. Throws when the search was not exhaustive: a state counted twice is no harm, one
 * left out without a word would be.
 */
export async function search(defines: Defines, optimize: '-O0' | '-O2' = '-O0'): Promise<Search> {
  const directory = await mkdtemp(join(tmpdir(), 'fencepost-model-'));
  try {
    const flags = Object.entries(defines).map(([name, value]) => (value === true ? `-D${name}` : `-D${name}=${value}`));
    await run('spin', [...flags, '-a', MODEL], { cwd: directory });
    // No partial-order reduction: there is one process. States are stored whole, so none is taken for another.
    await run('gcc', [optimize, '-w', '-DSAFETY', '-DNOREDUCE', '-DMEMLIM=4000', '-o', 'pan', 'pan.c'], {
      cwd: directory,
    });
    // -E: the end of all steps, for want of terms or log, is no fault. -m: the longest path, -n: no list of the unreached.
    const { stdout } = await run('./pan', ['-E', '-n', '-m10000'], { cwd: directory, maxBuffer: 1 << 24 }).catch(
      (error: unknown) => {
        // pan ends with a code of its own when an assertion fails.
        if (error instanceof Error && 'stdout' in error && typeof error.stdout === 'string') return error as never;
        throw error;
      },
    );
    return read(stdout);
  } finally {
    await rm(directory, { recursive: true });
  }
}

function read(output: string): Search {
  const violated = /assertion violated (\w+)/.exec(output)?.[1];
  const states = /(\d+) states, stored/.exec(output)?.[1];
  const depth = /depth reached (\d+)/.exec(output)?.[1];
  const errors = /errors: (\d+)/.exec(output)?.[1];
  const partial = /max search depth too small|out of memory|memory limit/.exec(output)?.[0];
  if (states === undefined || depth === undefined || errors === undefined || partial !== undefined) {
    throw new Error(`the search did not end: ${partial ?? output.slice(-2_000)}`);
  }
  if ((errors === '0') !== (violated === undefined)) throw new Error(`not an assertion: ${output.slice(0, 2_000)}`);
  if (violated === undefined && output.includes('Search not completed')) throw new Error('the search was broken off');
  return { violated, states: Number(states), depth: Number(depth) };
}
