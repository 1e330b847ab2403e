/** Processes of the demo: started here, and all gone when the demo ends, however it ends. */
import { fork, spawn } from 'node:child_process';
import { rmSync } from 'node:fs';
import { createServer } from 'node:net';
import { fileURLToPath } from 'node:url';

/** @type {Set<import('node:child_process').ChildProcess>} */
const running = new Set();
/** @type {string[]} */
const directories = [];

/**
 * Has a directory removed at the end.
 * @param {string} path
 */
export function removeAtEnd(path) {
  directories.push(path);
}

/**
 * @param {import('node:child_process').ChildProcess} child
 * @returns {import('node:child_process').ChildProcess}
 */
function watched(child) {
  running.add(child);
  child.once('exit', () => running.delete(child));
  return child;
}

process.on('exit', () => {
  // A stopped process takes SIGKILL too.
  for (const child of running) child.kill('SIGKILL');
  for (const directory of directories) rmSync(directory, { recursive: true, force: true, maxRetries: 5 });
});
for (const signal of /** @type {const} */ (['SIGINT', 'SIGTERM'])) process.on(signal, () => process.exit(130));

/**
 * Starts a program of this folder that answers one message with one.
 * @param {string} file
 * @param {readonly string[]} args
 */
export function startProgram(file, args) {
  const child = watched(fork(fileURLToPath(new URL(file, import.meta.url)), args));
  /** @type {{ resolve: (answer: any) => void, reject: (error: Error) => void, wanted: string }[]} */
  const waiting = [];
  child.on('message', (/** @type {any} */ answer) => {
    const at = waiting.findIndex(({ wanted }) => wanted === answer.type || answer.type === 'error');
    const [waiter] = at < 0 ? [] : waiting.splice(at, 1);
    if (answer.type === 'error') waiter?.reject(new Error(`${file} ${args[0]}: ${answer.message}`));
    else waiter?.resolve(answer);
  });
  child.once('exit', (code, signal) => {
    for (const { reject } of waiting) reject(new Error(`${file} ${args[0]} ended (${signal ?? code})`));
  });
  return {
    child,
    /**
     * The next message of this type.
     * @param {string} wanted
     * @returns {Promise<any>}
     */
    next: (wanted) => new Promise((resolve, reject) => waiting.push({ resolve, reject, wanted })),
    /** @param {object} message */
    tell: (message) => child.send(message),
    end: () => child.kill('SIGKILL'),
  };
}

/**
 * Starts a node of the cluster. What it logs is shown only when it ends by itself.
 * @param {string} configFile
 */
export function startNode(configFile) {
  const main = fileURLToPath(new URL('../../dist/cli/main.js', import.meta.url));
  const child = spawn(process.execPath, [main, 'start', '--config', configFile], { stdio: ['ignore', 'pipe', 'pipe'] });
  let log = '';
  for (const stream of [child.stdout, child.stderr])
    stream.on('data', (/** @type {Buffer} */ bytes) => {
      log = (log + bytes.toString()).slice(-4_000);
    });
  child.once('exit', (code) => {
    if (code !== null) console.error(`A node ended by itself with exit code ${code}. The end of its log:\n${log}`);
  });
  return watched(child);
}

/**
 * Free ports on loopback.
 * @param {number} count
 * @returns {Promise<number[]>}
 */
export async function freePorts(count) {
  const servers = await Promise.all(
    Array.from({ length: count }, async () => {
      const server = createServer();
      await new Promise((resolve) => {
        server.listen(0, '127.0.0.1', () => resolve(undefined));
      });
      return server;
    }),
  );
  return Promise.all(
    servers.map(async (server) => {
      const address = server.address();
      await new Promise((resolve) => {
        server.close(resolve);
      });
      if (address === null || typeof address === 'string') throw new Error('no port was given');
      return address.port;
    }),
  );
}
