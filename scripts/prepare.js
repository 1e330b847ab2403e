/**
 * What `npm test` and `npm start` do first, so that both work in a fresh clone: check Node, install, build.
 * Runs before anything is built, hence plain JavaScript with its types in comments.
 */
import { spawnSync } from 'node:child_process';
import { chmodSync, existsSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

/** The root of the repository. */
export const root = fileURLToPath(new URL('..', import.meta.url));

/** What an installation leaves behind; npm writes it last. */
const INSTALLED = 'node_modules/.package-lock.json';

/** The package of servers and drivers that only tests need, with a lock file of its own. */
const SERVERS = 'test/servers';

/**
 * When a file was last written, in milliseconds since 1970; 0 when it does not exist.
 * @param {string} path relative to the root
 * @returns {number}
 */
function writtenAt(path) {
  return statSync(join(root, path), { throwIfNoEntry: false })?.mtimeMs ?? 0;
}

/**
 * Ends this process with its output untouched when a step fails.
 * @param {string} what for the message
 * @param {string} command
 * @param {readonly string[]} args
 */
function step(what, command, args) {
  const { status, error } = spawnSync(command, args, { cwd: root, stdio: ['ignore', 'inherit', 'inherit'] });
  if (status === 0) return;
  console.error(`${what} failed${error === undefined ? '' : `: ${error.message}`}`);
  process.exit(1);
}

/** Ends this process with one message when Node is too old to run Fencepost. */
export function checkNode() {
  const [major = 0, minor = 0] = process.versions.node.split('.').map(Number);
  if (major > 20 || (major === 20 && minor >= 19)) return;
  console.error(
    `Fencepost needs Node 20.19 or newer; this is ${process.versions.node}. Install a newer Node and repeat.`,
  );
  process.exit(1);
}

/** Installs what package-lock.json names unless that has been done. No package needs its install script. */
export function install() {
  if (writtenAt(INSTALLED) >= writtenAt('package-lock.json')) return;
  console.log('Installing packages (npm ci) …');
  step('npm ci', 'npm', ['ci', '--ignore-scripts', '--no-audit', '--no-fund']);
}

/**
 * The same for `test/servers`, whose packages do need their install scripts. Whether that went well: the tests that
 * want such a server are skipped otherwise, and say so.
 * @returns {boolean}
 */
export function installServers() {
  if (writtenAt(join(SERVERS, INSTALLED)) >= writtenAt(join(SERVERS, 'package-lock.json'))) return true;
  console.log(`Installing servers for tests (npm ci --prefix ${SERVERS}) …`);
  // A driver is compiled where its binary cannot be downloaded; the headers that came with this Node spare another download.
  const prefix = join(process.execPath, '../..');
  const nodedir = existsSync(join(prefix, 'include/node/node.h')) ? { npm_config_nodedir: prefix } : {};
  const { status } = spawnSync('npm', ['ci', '--no-audit', '--no-fund'], {
    cwd: join(root, SERVERS),
    stdio: 'inherit',
    env: { ...nodedir, ...process.env },
  });
  return status === 0;
}

/** Compiles `src` into `dist`; 0.4 s when nothing changed. */
export function build() {
  step('tsc -b src', process.execPath, [join(root, 'node_modules/typescript/bin/tsc'), '-b', 'src']);
  // For npx, which runs it as a program; the compiler does not set the bit.
  chmodSync(join(root, 'dist/cli/main.js'), 0o755);
}
