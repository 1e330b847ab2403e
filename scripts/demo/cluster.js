/** The demo's cluster: three real nodes on loopback with their data in a temporary directory. */
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { performance } from 'node:perf_hooks';
import { setTimeout as pause } from 'node:timers/promises';
import { connect } from 'fencepost';
import { freePorts, startNode } from './processes.js';

const NODES = ['n1', 'n2', 'n3'];
const LEADER_MS = 60_000;

/**
 * Forms a cluster and waits for its leader.
 * @param {string} directory
 */
export async function startCluster(directory) {
  const ports = await freePorts(2 * NODES.length);
  const members = NODES.map((nodeId, at) => ({ nodeId, peerAddress: `127.0.0.1:${ports[2 * at + 1]}` }));
  const endpoints = NODES.map((_, at) => `127.0.0.1:${ports[2 * at]}`);
  const files = NODES.map((nodeId, at) => {
    const file = join(directory, `${nodeId}.json`);
    const { peerAddress } = /** @type {{ peerAddress: string }} */ (members[at]);
    const config = {
      cluster: 'demo',
      nodeId,
      dataDir: join(directory, nodeId),
      clientAddress: endpoints[at],
      peerAddress,
    };
    mkdirSync(config.dataDir, { recursive: true });
    writeFileSync(file, JSON.stringify({ ...config, members, form: true }));
    return file;
  });
  const nodes = new Map(NODES.map((node, at) => [node, startNode(/** @type {string} */ (files[at]))]));
  const client = connect({ endpoints, holder: 'demo' });

  /** The name of the node that leads, once one does. */
  const leader = async () => {
    const giveUpAt = performance.now() + LEADER_MS;
    while (performance.now() < giveUpAt) {
      for (const one of await client.status())
        if (one.type === 'answered' && one.status.role === 'leader') return String(one.status.node);
      await pause(50);
    }
    throw new Error(`no leader within ${LEADER_MS} ms`);
  };

  return {
    endpoints,
    client,
    leader,
    /** Kills the leader as a power cut would, and gives its name. */
    async killLeader() {
      const name = await leader();
      const node = nodes.get(name);
      await new Promise((resolve) => {
        node?.once('exit', resolve);
        node?.kill('SIGKILL');
      });
      return name;
    },
    /**
     * Starts a killed node again, with its data.
     * @param {string} name
     */
    restart(name) {
      nodes.set(name, startNode(/** @type {string} */ (files[NODES.indexOf(name)])));
    },
  };
}
