/** `npm run chaos -- --minutes N [--seed S] [--nodes 3|5]`: installs, builds and runs `test/process/chaos` on real processes. */
import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { build, checkNode, install, root } from './prepare.js';

checkNode();
if (process.platform === 'win32') {
  console.error('The suite stops and wakes processes by signals that Windows does not have: run it on Linux or macOS.');
  process.exit(1);
}
install();
build();
const { build: bundle } = await import('vite');
// Two folders below the root, as `src` and `dist` files are: the proto files are found from there.
const out = join(root, `node_modules/.fencepost-chaos-${process.pid}`);
const chaos = join(root, 'test/process/chaos');
await bundle({
  root,
  configFile: false,
  logLevel: 'error',
  build: {
    ssr: true,
    outDir: out,
    target: 'node20',
    rolldownOptions: {
      input: ['main', 'worker', 'resource'].map((name) => join(chaos, `${name}.ts`)),
      output: { entryFileNames: '[name].mjs', chunkFileNames: '[name]-[hash].mjs' },
    },
  },
});
process.on('exit', () => {
  rmSync(out, { recursive: true, force: true });
});
await import(join(out, 'main.mjs'));
