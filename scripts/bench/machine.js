/** What this machine gives at this moment, to read the other figures by: a bare unary call, a sync, a synced LevelDB write. */
import { mkdtemp, open, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { performance } from 'node:perf_hooks';
import { Client, credentials, Server, ServerCredentials } from '@grpc/grpc-js';
import { ClassicLevel } from 'classic-level';
import { quantile } from './cluster.js';

const ECHO = {
  path: '/bench/Echo',
  requestStream: false,
  responseStream: false,
  requestSerialize: (/** @type {Buffer} */ bytes) => bytes,
  requestDeserialize: (/** @type {Buffer} */ bytes) => bytes,
  responseSerialize: (/** @type {Buffer} */ bytes) => bytes,
  responseDeserialize: (/** @type {Buffer} */ bytes) => bytes,
};

/** A unary call within one process: half of it is the server's. */
async function echo() {
  const server = new Server();
  server.addService(
    { Echo: ECHO },
    { Echo: (/** @type {any} */ call, /** @type {any} */ done) => done(null, call.request) },
  );
  const port = await new Promise((done, fail) => {
    server.bindAsync('127.0.0.1:0', ServerCredentials.createInsecure(), (error, bound) => {
      if (error === null) done(bound);
      else fail(error);
    });
  });
  const client = new Client(`127.0.0.1:${port}`, credentials.createInsecure());
  const bytes = Buffer.alloc(100);
  const call = () =>
    new Promise((done, fail) => {
      client.makeUnaryRequest(ECHO.path, ECHO.requestSerialize, ECHO.responseDeserialize, bytes, (error) => {
        if (error === null) done(undefined);
        else fail(error);
      });
    });
  const times = await timed(call, 2_000);
  client.close();
  server.forceShutdown();
  return times;
}

/** @param {string} home */
async function sync(home) {
  const file = await open(join(home, 'file'), 'w');
  const bytes = Buffer.alloc(4_096, 1);
  const times = await timed(async () => {
    await file.write(bytes);
    await file.datasync();
  }, 500);
  await file.close();
  return times;
}

/** @param {string} home */
async function put(home) {
  const db = new ClassicLevel(join(home, 'db'));
  let at = 0;
  const times = await timed(() => db.put(String(at++), 'x'.repeat(300), { sync: true }), 500);
  await db.close();
  return times;
}

/**
 * @param {() => Promise<unknown>} action
 * @param {number} runs
 */
async function timed(action, runs) {
  const times = [];
  for (let run = 0; run < runs; run++) {
    const begin = performance.now();
    await action();
    times.push(performance.now() - begin);
  }
  return times.slice(runs / 4);
}

export async function benchMachine() {
  const home = await mkdtemp(join(tmpdir(), 'fencepost-bench-'));
  try {
    const row = (/** @type {string} */ what, /** @type {number[]} */ times) => ({
      what,
      'p50 ms': quantile(times, 0.5).toFixed(2),
      'p99 ms': quantile(times, 0.99).toFixed(2),
    });
    return [
      row('a bare unary gRPC call, client and server in one process', await echo()),
      row('write and fdatasync of 4 KiB', await sync(home)),
      row('a synced LevelDB put', await put(home)),
    ];
  } finally {
    await rm(home, { recursive: true, force: true });
  }
}
