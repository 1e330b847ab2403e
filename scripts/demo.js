/** `npm run demo`: installs, builds and plays `demo/play.js` on real processes. Takes about half a minute. */
import { build, checkNode, install } from './prepare.js';

checkNode();
if (process.platform === 'win32') {
  console.error('The demo stops and wakes processes by signals that Windows does not have: run it on Linux or macOS.');
  process.exit(1);
}
install();
build();
await import('./demo/play.js');
