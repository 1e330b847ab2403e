/** `npm start`: installs, builds and runs the three nodes of `cluster/local` until Ctrl-C. Their data is kept. */
import { build, checkNode, install, root } from './prepare.js';

checkNode();
install();
build();
// The files name `.fencepost/n1` and so on: wherever npm was called, that is in the repository.
process.chdir(root);
process.argv.splice(2, Infinity, 'dev', '--config-dir', 'cluster/local');
await import(new URL('../dist/cli/main.js', import.meta.url).href);
