/**
 * How much the heap of one member gains between the 100 000th and the 1 000 000th failed try, timed-out waiter and dropped
 * domain (bound: 20 MB each), after a full collection both times.
 */
import { execFile } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { build } from 'vite';

/** @param {string} path from the root of the repository */
const at = (path) => fileURLToPath(new URL(`../../${path}`, import.meta.url));

/** @returns {Promise<object[]>} */
export async function benchHeap() {
  await build({
    configFile: false,
    logLevel: 'error',
    build: {
      ssr: at('test/lease/heap-child.ts'),
      outDir: at('node_modules/.fencepost-heap'),
      emptyOutDir: false,
      target: 'node20',
      rolldownOptions: { output: { entryFileNames: 'heap-child.mjs' } },
    },
  });
  const rows = [];
  for (const kind of ['failed', 'timedOut', 'dropped']) {
    const child = at('node_modules/.fencepost-heap/heap-child.mjs');
    const args = ['--expose-gc', child, kind, '1000000', '100000', '65536', `${8 * 1024 * 1024}`];
    const { stdout } = await promisify(execFile)(process.execPath, args);
    const { before, after } = JSON.parse(stdout);
    const gained = (after - before) / 1e6;
    rows.push({
      what: kind,
      'MB at 100 000': (before / 1e6).toFixed(1),
      'MB at 1 000 000': (after / 1e6).toFixed(1),
      'gained, MB': gained.toFixed(1),
      flat: gained < 20,
    });
  }
  return rows;
}
