/** A process that is killed in the middle of a guarded operation. */
import { spawn } from 'node:child_process';
import { pathToFileURL } from 'node:url';
import { join } from 'node:path';

/** The address of a built module, for `import` in such a process. */
export function builtModule(path: string): string {
  return pathToFileURL(join(process.cwd(), 'dist', path)).href;
}

/** Runs the module `script` with these arguments, and kills it when it has written to its standard output. */
export async function killedInside(script: string, ...args: string[]): Promise<void> {
  const child = spawn(process.execPath, ['--input-type=module', '-e', script, ...args], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const gone = new Promise((resolve) => child.once('close', resolve));
  try {
    await new Promise<void>((resolve, reject) => {
      child.stdout.once('data', () => {
        resolve();
      });
      child.once('exit', () => {
        reject(new Error('the child ended before it had checked'));
      });
    });
  } finally {
    child.kill('SIGKILL');
    await gone;
  }
}
