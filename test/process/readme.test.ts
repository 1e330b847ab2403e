import { readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { describe, expect, it } from 'vitest';
import { snippetsIn, UserProject } from '../support/snippets.js';
import { ProcessCluster } from './cluster.js';

const ROOT = resolve(import.meta.dirname, '../..');
const SHOW =
  "import { Level } from 'level';\nconst db = new Level('orders');\nconsole.log(await db.get('paid'));\nawait db.close();\n";

describe('README', () => {
  it('its snippet with a guard runs as it stands, twice, against real nodes', async () => {
    const snippet = snippetsIn(readFileSync(join(ROOT, 'README.md'), 'utf8')).find(({ code }) =>
      code.includes('fence'),
    );
    if (snippet === undefined) throw new Error('README has no block with a guard');
    await using cluster = await ProcessCluster.started();
    await using project = await UserProject.create();
    const endpoints = cluster.nodes.map(({ clientAddress }) => clientAddress);
    // Only the addresses are those of this test.
    const here = snippet.code.replace(/127\.0\.0\.1:710(\d)/g, (_, at: string) => endpoints[Number(at) - 1] ?? '');
    for (const paid of ['1', '2']) {
      await project.run({ language: snippet.language, code: here });
      expect((await project.run({ language: 'js', code: SHOW })).trim()).toBe(paid);
    }
  });
});
