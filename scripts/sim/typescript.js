/** Runs a TypeScript module of the tests, which Node alone cannot load. */
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { checkNode, install, root } from '../prepare.js';

/**
 * Calls the module's `main(arguments, say)` and ends this process with the exit code that it resolves to: 2 when the
 * arguments cannot be followed.
 * @param {string} path relative to the root
 */
export async function runTypeScript(path) {
  checkNode();
  // Only in a fresh clone: a copy of the repository may share its packages with others that are at work.
  if (!existsSync(join(root, 'node_modules/vite'))) install();
  process.chdir(root);
  const { runnerImport } = await import('vite');
  /** @type {{ module: { main: (args: readonly string[], say: (line: string) => void) => Promise<number> } }} */
  const { module } = await runnerImport(join(root, path));
  try {
    process.exitCode = await module.main(process.argv.slice(2), (line) => {
      console.log(line);
    });
  } catch (error) {
    if (!(error instanceof Error) || error.name !== 'UsageError') throw error;
    console.error(error.message);
    process.exitCode = 2;
  }
}
