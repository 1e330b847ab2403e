import { mkdtemp, rm } from 'node:fs/promises';
import type { AddressInfo } from 'node:net';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, describe, expect, it, vi } from 'vitest';
import type { NodeId } from '../../src/base/ids.js';
import { ZERO_REVISION } from '../../src/base/revision.js';
import type { NodeConfig } from '../../src/node/config.js';
import { createLog } from '../../src/node/log.js';
import { Node } from '../../src/node/node.js';
import type { Ending } from '../../src/node/node.js';
import { nodeFiles } from '../../src/storage/files.js';

const directories: string[] = [];

afterEach(async () => {
  vi.restoreAllMocks();
  for (const directory of directories.splice(0)) await rm(directory, { recursive: true });
});

async function freePort(): Promise<number> {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  await new Promise((resolve) => server.close(resolve));
  return port;
}

async function loneNode(): Promise<NodeConfig> {
  const directory = await mkdtemp(join(tmpdir(), 'fencepost-node-'));
  directories.push(directory);
  const peerAddress = `127.0.0.1:${await freePort()}`;
  const nodeId = 'n1' as NodeId;
  return {
    cluster: 'test',
    nodeId,
    dataDir: join(directory, 'data'),
    clientAddress: `127.0.0.1:${await freePort()}`,
    peerAddress,
    members: [{ nodeId, peerAddress }],
    form: true,
    floor: ZERO_REVISION,
    holdMs: 0,
    insecure: false,
    diskFloorBytes: 0,
    tickMs: 10,
    heartbeatMs: 100,
    electionMinMs: 500,
    electionMaxMs: 1_000,
    defaultTtlMs: 15_000,
    queueLimit: 1_000,
    leasesPerPrincipal: 1_000,
    waitersPerPrincipal: 1_000,
    prefixQuotas: [],
    logLevel: 'error',
    auditGrants: false,
    auditReleases: false,
  };
}

/** A node, its messages, and its end. */
function makeNode(config: NodeConfig): { node: Node; serving: Promise<void>; ended: Promise<Ending> } {
  let serves: () => void = () => undefined;
  let ends: (ending: Ending) => void = () => undefined;
  const serving = new Promise<void>((resolve) => (serves = resolve));
  const ended = new Promise<Ending>((resolve) => (ends = resolve));
  const log = createLog(
    'info',
    {},
    {
      write: (line) => {
        if (line.includes('"serving"')) serves();
      },
    },
  );
  return { node: new Node(config, 'test', log, ends), serving, ended };
}

describe('a node that is stopped', () => {
  it('while it opens its directory ends as stopped, and keeps neither ports nor directory', async () => {
    const config = await loneNode();
    const first = makeNode(config);
    await first.node.start();
    await first.serving;
    first.node.stop();
    expect(await first.ended).toEqual({ type: 'stopped' });
    // At several moments of the way.
    for (let turns = 0; turns < 8; turns++) {
      const early = makeNode(config);
      const started = early.node.start();
      for (let turn = 0; turn < turns * 4; turn++) await new Promise((resolve) => setImmediate(resolve));
      early.node.stop();
      await started;
      expect(await early.ended).toEqual({ type: 'stopped' });
    }
    const last = makeNode(config);
    await last.node.start();
    await last.serving;
    last.node.stop();
    expect(await last.ended).toEqual({ type: 'stopped' });
  });
});

describe('a node whose disk fails at its start', () => {
  const eio = Object.assign(new Error('EIO: i/o error'), { code: 'EIO' });

  /** Starts it, and gives its ports back. */
  async function endingOf(config: NodeConfig): Promise<Ending> {
    const { node, ended } = makeNode(config);
    await node.start();
    const ending = await ended;
    node.stop();
    return ending;
  }

  it('while it prepares its directory ends by its disk', async () => {
    const sync = vi.spyOn(nodeFiles, 'syncDirectory').mockRejectedValueOnce(eio);
    expect(await endingOf(await loneNode())).toEqual({ type: 'disk', error: eio });
    expect(sync).toHaveBeenCalled();
  });

  it('while it makes MARK whole ends by its disk', async () => {
    const config = await loneNode();
    const first = makeNode(config);
    await first.node.start();
    await first.serving;
    first.node.stop();
    await first.ended;
    const open = nodeFiles.openInPlace.bind(nodeFiles);
    vi.spyOn(nodeFiles, 'openInPlace').mockImplementationOnce(async (path) => {
      const file = await open(path);
      return { ...file, sync: () => Promise.reject(eio) };
    });
    expect(await endingOf(config)).toEqual({ type: 'disk', error: eio });
  });
});
