/**
 * `npm run check`: every check that changes nothing, all of them even when an early one finds something, so that one
 * run shows all there is to mend. `npm run fix` mends what can be mended by a tool.
 */
import { spawnSync } from 'node:child_process';
import { checkNode, install, installServers, root } from './prepare.js';

const CHECKS = ['types', 'lint', 'format', 'imports', 'unused', 'proto', 'breaking', 'api'];

checkNode();
install();
// For the types of the drivers.
if (!installServers()) process.exit(1);
const failed = CHECKS.filter((check) => {
  console.log(`— ${check}`);
  const { status } = spawnSync('npm', ['run', '--silent', `check:${check}`], { cwd: root, stdio: 'inherit' });
  return status !== 0;
});
console.log(failed.length === 0 ? 'check: nothing found' : `check: look at ${failed.join(', ')}`);
process.exit(failed.length === 0 ? 0 : 1);
