/** Real nodes for the benchmarks, and raw unary calls to them. */
import { spawn } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { Client, credentials, Metadata } from '@grpc/grpc-js';
import { METHOD_OF } from '../../dist/wire/public.js';
import { requestOf } from '../../dist/wire/public-request.js';
import { root } from '../prepare.js';

/**
 * @typedef {object} BenchNode
 * @property {string} name
 * @property {string} clientAddress
 * @property {string} file its configuration
 * @property {import('node:child_process').ChildProcess | undefined} child
 */

/** A raw gRPC client that retries nothing. */
export class RawClient {
  /** @param {string} address */
  constructor(address) {
    this.client = new Client(address, credentials.createInsecure(), {
      'grpc.use_local_subchannel_pool': 1,
      'grpc.enable_retries': 0,
      'grpc.enable_http_proxy': 0,
      'grpc.initial_reconnect_backoff_ms': 50,
      'grpc.max_reconnect_backoff_ms': 100,
    });
  }

  /**
   * @param {import('../../dist/base/api.js').Call} call
   * @param {number} timeoutMs
   * @returns {Promise<any>} the answer
   */
  call(call, timeoutMs = 10_000) {
    const { path, requestSerialize, responseDeserialize } = METHOD_OF[call.type];
    return new Promise((done, fail) => {
      this.client.makeUnaryRequest(
        path,
        requestSerialize,
        responseDeserialize,
        requestOf(call),
        new Metadata(),
        { deadline: Date.now() + timeoutMs },
        (error, response) => {
          if (error !== null || response === undefined) fail(error ?? new Error('no response'));
          else done(response.answer);
        },
      );
    });
  }

  close() {
    this.client.close();
  }
}

/**
 * @param {string} domain
 * @param {number} ttlMs
 * @returns {import('../../dist/base/api.js').AcquireCall}
 */
export function acquireOf(domain, ttlMs = 600_000) {
  const requestId = randomUUID();
  const rest = { waitMs: 0, metadata: [], coolDownMs: 0, slots: 1, seenRevision: 0 };
  // @ts-expect-error the brands are for code that checks: here every value is made to be right
  return { type: 'acquire', domain, requestId, holder: 'bench', ttlMs, ...rest };
}

/** See the head of the file. */
export class BenchCluster {
  /**
   * @param {string} home
   * @param {BenchNode[]} nodes
   * @param {readonly string[]} nodeOptions
   */
  constructor(home, nodes, nodeOptions) {
    this.home = home;
    this.nodes = nodes;
    this.nodeOptions = nodeOptions;
  }

  /**
   * Forms a cluster.
   * @param {number} size how many nodes
   * @param {readonly string[]} nodeOptions for Node itself
   */
  static async start(size = 3, nodeOptions = []) {
    const home = await mkdtemp(join(tmpdir(), 'fencepost-bench-'));
    const ports = await freePorts(2 * size);
    const members = Array.from({ length: size }, (_, at) => ({
      nodeId: `n${at + 1}`,
      peerAddress: `127.0.0.1:${ports[size + at]}`,
    }));
    const nodes = [];
    for (const [at, { nodeId, peerAddress }] of members.entries()) {
      const clientAddress = `127.0.0.1:${ports[at]}`;
      const file = join(home, `${nodeId}.json`);
      const dataDir = join(home, nodeId);
      const config = {
        cluster: 'bench',
        nodeId,
        dataDir,
        clientAddress,
        peerAddress,
        members,
        form: true,
        logLevel: 'error',
      };
      await writeFile(file, JSON.stringify(config));
      nodes.push({ name: nodeId, clientAddress, file, child: undefined });
    }
    const cluster = new BenchCluster(home, nodes, nodeOptions);
    for (const node of nodes) cluster.startNode(node);
    await cluster.untilLeader();
    return cluster;
  }

  /** @param {BenchNode} node */
  startNode(node) {
    const args = [...this.nodeOptions, join(root, 'dist/cli/main.js'), 'start', '--config', node.file];
    const child = spawn(process.execPath, args, { stdio: ['ignore', 'ignore', 'ignore', 'ipc'] });
    node.child = child;
    child.once('exit', () => {
      if (node.child === child) node.child = undefined;
    });
  }

  /**
   * Kills a node and waits until it is gone.
   * @param {BenchNode} node
   */
  async kill(node) {
    const { child } = node;
    if (child === undefined) return;
    const gone = new Promise((done) => child.once('exit', done));
    child.kill('SIGKILL');
    await gone;
  }

  /** The leader, once a majority follows it. */
  async untilLeader() {
    for (const end = Date.now() + 60_000; Date.now() < end; await sleep(20)) {
      const seen = await Promise.all(this.nodes.map((node) => statusOf(node)));
      for (const node of this.nodes) {
        const followed = seen.filter((status) => status?.leader === node.name && status.role !== 'candidate').length;
        if (
          followed > this.nodes.length / 2 &&
          seen.some((status) => status?.node === node.name && status.role === 'leader')
        )
          return node;
      }
    }
    throw new Error('the cluster found no leader within 60 s');
  }

  /** Waits until all nodes answer and have applied the same. */
  async untilEqual() {
    for (const end = Date.now() + 120_000; Date.now() < end; await sleep(20)) {
      const seen = await Promise.all(this.nodes.map((node) => statusOf(node)));
      if (new Set(seen.map((status) => status?.appliedRevision ?? -Math.random())).size === 1) return;
    }
    throw new Error('the nodes did not reach the same revision within 120 s');
  }

  async stop() {
    await Promise.all(this.nodes.map((node) => this.kill(node)));
    await rm(this.home, { recursive: true, force: true });
  }
}

/**
 * @param {BenchNode} node
 * @returns {Promise<import('../../dist/base/api.js').GetStatusAnswer | undefined>}
 */
async function statusOf(node) {
  const client = new RawClient(node.clientAddress);
  try {
    return await client.call({ type: 'getStatus' }, 1_000);
  } catch {
    return undefined;
  } finally {
    client.close();
  }
}

/**
 * Resident memory of a process in MiB (Linux).
 * @param {number | undefined} pid
 */
export function residentMiB(pid) {
  const status = readFileSync(`/proc/${pid ?? 'self'}/status`, 'utf8');
  return Number(/^VmRSS:\s+(\d+)/m.exec(status)?.[1] ?? 0) / 1024;
}

/**
 * @param {readonly number[]} values
 * @param {number} share 0 to 1
 */
export function quantile(values, share) {
  const sorted = [...values].sort((left, right) => left - right);
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? 0;
}

/** @param {number} count */
async function freePorts(count) {
  const servers = await Promise.all(
    Array.from({ length: count }, () => {
      const server = createServer();
      return new Promise((done) =>
        server.listen(0, '127.0.0.1', () => {
          done(server);
        }),
      );
    }),
  );
  const ports = servers.map((server) => server.address().port);
  await Promise.all(servers.map((server) => new Promise((done) => server.close(done))));
  return ports;
}
