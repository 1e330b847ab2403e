/**
 * What is over leaves nothing in memory (issue: heap flat). Here a tenth of it, with a tenth of the finished requests
 * and of the log, so that both are full before the heap is first looked at; `npm run bench heap` does the whole.
 */
import { execFile } from 'node:child_process';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { build } from 'vite';
import { beforeAll, expect, test } from 'vitest';

const here = dirname(fileURLToPath(import.meta.url));
// Two folders below the root, as `src` and `dist` files are: the proto files are found from there.
const out = join(here, '../../node_modules/.fencepost-heap');

beforeAll(async () => {
  await build({
    configFile: false,
    logLevel: 'error',
    build: {
      ssr: join(here, 'heap-child.ts'),
      outDir: out,
      emptyOutDir: false,
      target: 'node20',
      rolldownOptions: { output: { entryFileNames: 'heap-child.mjs' } },
    },
  });
}, 60_000);

test.each(['failed', 'timedOut', 'dropped'])(
  'the heap is flat between the 10 000th and the 60 000th of those that are %s',
  async (kind) => {
    const args = ['--expose-gc', join(out, 'heap-child.mjs'), kind, '60000', '10000', '6000', '800000'];
    const { stdout } = await promisify(execFile)(process.execPath, args);
    const { before, after } = JSON.parse(stdout) as { before: number; after: number };
    expect(before).toBeGreaterThan(1_000_000);
    // Less than 24 bytes each: nothing that was kept of one would be so small.
    expect(after - before).toBeLessThan(1_200_000);
  },
  120_000,
);
