import { mkdtemp, readdir, rm } from 'node:fs/promises';
import { existsSync, mkdirSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { loadConfig } from '../../node/load-config.js';
import { UsageFaults } from '../../node/usage-faults.js';
import type { CommandSpec } from '../command.js';
import { isFree, type LocalNode, runLocalCluster } from '../local-cluster.js';

const FIRST_CLIENT_PORT = 7101;
const FIRST_PEER_PORT = 7201;

/** `fencepost dev`. */
export const spec: CommandSpec = {
  operands: '',
  options: [
    { flag: 'nodes', value: '1|3', about: 'how many nodes (default 3)' },
    {
      flag: 'data-dir',
      value: 'DIR',
      about: 'keep the data here; it is used again by the next run (default: thrown away)',
    },
    { flag: 'config-dir', value: 'DIR', about: 'run the nodes whose JSON files are in DIR instead' },
  ],
  notes: 'Takes the usual ports (7101–7103, 7201–7203) if they are free, else others. Ctrl-C stops the nodes.',
  exitCodes:
    'Exit codes: 0 stopped by a signal; 2 wrong usage, a bad configuration or a port in use; else the greatest exit code\nof the nodes, which have all ended (see fencepost start --help).',
  async run(input, io) {
    const nodes = input.text('nodes') ?? '3';
    if (nodes !== '1' && nodes !== '3') input.fault(`--nodes must be 1 or 3, not ${JSON.stringify(nodes)}`);
    const dataDir = input.text('data-dir');
    const configDir = input.text('config-dir');
    if (configDir !== undefined && (dataDir !== undefined || input.has('nodes')))
      input.fault('--config-dir stands alone: its files name the data directories and say how many nodes there are');
    input.finish('dev');
    const stop = stopSignals();
    if (configDir !== undefined) {
      const found = await nodesIn(configDir);
      const folders = found.map(({ config }) => config.dataDir);
      return await runLocalCluster(found, { folder: folders.join(' ') }, io, stop);
    }
    if (dataDir !== undefined) {
      const folder = resolve(dataDir);
      return await runLocalCluster(await nodesUnder(folder, Number(nodes)), { folder }, io, stop);
    }
    const thrownAway = await mkdtemp(join(tmpdir(), 'fencepost-dev-'));
    try {
      return await runLocalCluster(await nodesUnder(thrownAway, Number(nodes)), { folder: undefined }, io, stop);
    } finally {
      await rm(thrownAway, { recursive: true, force: true });
    }
  },
};

/** Aborts at the first signal that asks to stop; the second one ends this process at once, as is usual. */
function stopSignals(): AbortSignal {
  const stop = new AbortController();
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const)
    process.once(signal, () => {
      stop.abort();
    });
  return stop.signal;
}

/** The nodes whose files are in `directory`; one message for the faults of all of them. */
async function nodesIn(directory: string): Promise<LocalNode[]> {
  const faults: string[] = [];
  let names: string[] = [];
  try {
    names = (await readdir(directory)).filter((name) => name.endsWith('.json')).sort();
    if (names.length === 0) faults.push(`${directory} has no .json file`);
  } catch (error) {
    faults.push(`${directory} cannot be read: ${error instanceof Error ? error.message : String(error)}`);
  }
  const nodes = names.flatMap((name): LocalNode[] => {
    const file = join(directory, name);
    try {
      return [{ file, config: loadConfig({ file, environment: {}, flags: {} }) }];
    } catch (error) {
      if (!(error instanceof UsageFaults)) throw error;
      faults.push(...error.faults);
      return [];
    }
  });
  if (faults.length > 0) throw new UsageFaults('The nodes cannot be run', faults);
  return nodes;
}

/** The nodes of the cluster under `directory`; made, with ports that are free now, if there is none yet. */
async function nodesUnder(directory: string, count: number): Promise<LocalNode[]> {
  const configs = join(directory, 'config');
  if (existsSync(configs)) {
    const nodes = await nodesIn(configs);
    if (nodes.length !== count)
      throw new UsageFaults('The nodes cannot be run', [
        `${directory} holds a cluster of ${nodes.length}: give --nodes ${nodes.length}, or another --data-dir`,
      ]);
    return nodes;
  }
  const members: { nodeId: string; peerAddress: string; clientAddress: string }[] = [];
  for (let at = 0; at < count; at++)
    members.push({
      nodeId: `n${at + 1}`,
      peerAddress: await freeAddress(FIRST_PEER_PORT + at),
      clientAddress: await freeAddress(FIRST_CLIENT_PORT + at),
    });
  mkdirSync(configs, { recursive: true });
  for (const { nodeId, peerAddress, clientAddress } of members)
    writeFileSync(
      join(configs, `${nodeId}.json`),
      `${JSON.stringify(
        {
          cluster: 'dev',
          nodeId,
          dataDir: join(directory, nodeId),
          clientAddress,
          peerAddress,
          members: members.map((member) => ({ nodeId: member.nodeId, peerAddress: member.peerAddress })),
          form: true,
        },
        undefined,
        2,
      )}\n`,
    );
  return await nodesIn(configs);
}

/** `preferred` on loopback if it is free, else a port that the system chooses. */
async function freeAddress(preferred: number): Promise<string> {
  const usual = `127.0.0.1:${preferred}`;
  if (await isFree(usual)) return usual;
  return await new Promise((found) => {
    const server = createServer();
    server.listen(0, '127.0.0.1', () => {
      const address = server.address();
      const port = typeof address === 'object' && address !== null ? address.port : 0;
      server.close(() => {
        found(`127.0.0.1:${port}`);
      });
    });
  });
}
