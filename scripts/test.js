/** `npm test [-- filter …]`: installs, builds, runs every test. The last line is `N passed, N failed, N skipped`. */
import { spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { build, checkNode, install, installServers, root } from './prepare.js';

checkNode();
install();
if (!installServers()) console.error('npm ci failed in test/servers: tests that need them will be skipped.');
build();
const vitest = join(root, 'node_modules/vitest/vitest.mjs');
const { status } = spawnSync(process.execPath, [vitest, 'run', ...process.argv.slice(2)], {
  cwd: root,
  stdio: 'inherit',
});
process.exit(status ?? 1);
