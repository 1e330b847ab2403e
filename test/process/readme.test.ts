import { execFile } from 'node:child_process';
import { mkdir, mkdtemp, readFile, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { promisify } from 'node:util';
import { describe, expect, it } from 'vitest';
import { ProcessCluster } from './cluster.js';

const run = promisify(execFile);
const ROOT = resolve(import.meta.dirname, '../..');

describe('README', () => {
  it('its snippet runs as it stands, twice, against real nodes', async () => {
    const text = await readFile(join(ROOT, 'README.md'), 'utf8');
    const snippet = /^```js\n(.*?)^```$/ms.exec(text)?.[1];
    if (snippet === undefined) throw new Error('README has no block of JavaScript');
    await using cluster = await ProcessCluster.started();
    const home = await mkdtemp(join(tmpdir(), 'fencepost-readme-'));
    try {
      await mkdir(join(home, 'node_modules'));
      await symlink(ROOT, join(home, 'node_modules/fencepost'));
      await symlink(join(ROOT, 'node_modules/level'), join(home, 'node_modules/level'));
      const endpoints = cluster.nodes.map(({ clientAddress }) => clientAddress);
      // Only the addresses are those of this test.
      const here = snippet.replace(/127\.0\.0\.1:710(\d)/g, (_, at: string) => endpoints[Number(at) - 1] ?? '');
      await writeFile(join(home, 'snippet.mjs'), here);
      await writeFile(
        join(home, 'show.mjs'),
        "import { Level } from 'level';\nconst db = new Level('orders');\nconsole.log(await db.get('paid'));\nawait db.close();\n",
      );
      for (const paid of ['1', '2']) {
        await run(process.execPath, ['snippet.mjs'], { cwd: home, timeout: 60_000 });
        const { stdout } = await run(process.execPath, ['show.mjs'], { cwd: home });
        expect(stdout.trim()).toBe(paid);
      }
    } finally {
      await rm(home, { recursive: true, force: true });
    }
  });
});
