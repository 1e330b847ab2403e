/**
 * A cluster of real node processes on this machine, for `npm start` and `fencepost dev`: starts them, shows what they
 * log, says when a leader is there and what to try, stops them. Knows nothing of Raft: the nodes are `fencepost start`.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { createServer } from 'node:net';
import { createInterface } from 'node:readline';
import { setTimeout as pause } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { parseAddress } from '../base/address.js';
import { environmentName, FIELD_NAMES } from '../node/config-fields.js';
import type { NodeConfig } from '../node/config.js';
import { UsageFaults } from '../node/usage-faults.js';
import { ask, leaderOf, type NodeStatus } from './commands/status.js';
import { DEFAULT_ENDPOINTS, ENDPOINTS_VARIABLE } from './endpoints.js';
import type { Io } from './io.js';
import { readableLine } from './log-line.js';
import { type Cell, pairs, toned } from './table.js';

/** A node to run: its file, and what stands in it. */
export interface LocalNode {
  readonly file: string;
  readonly config: NodeConfig;
}

/** How long the nodes have to stop in order, in milliseconds; then they are killed. */
const STOP_MS = 20_000;
/** How long to wait for the nodes before saying what is missing, in milliseconds. */
const LEADER_MS = 30_000;
/** How long one node has to answer, in milliseconds. */
const ASK_MS = 1_000;

/** What becomes of the data. */
export interface Keeps {
  /** To be deleted to begin anew; undefined when the data does not outlive the run. */
  readonly folder: string | undefined;
}

interface Running {
  readonly node: LocalNode;
  readonly process: ChildProcess;
  /** Exit code, or -1 after a signal. */
  readonly ended: Promise<number>;
}

/** Runs the nodes until `stop` aborts or all have ended. Returns 0 after `stop`, else the greatest exit code. */
export async function runLocalCluster(
  nodes: readonly LocalNode[],
  keeps: Keeps,
  io: Io,
  stop: AbortSignal,
): Promise<number> {
  await refuseTakenPorts(nodes);
  const running = nodes.map((node) => start(node, io, stop));
  const allEnded = Promise.all(running.map((one) => one.ended));
  const stopped = new Promise<void>((resolve) => {
    stop.addEventListener('abort', () => {
      resolve();
    });
    if (stop.aborted) resolve();
  });
  const over = new AbortController();
  const announced = announce(running, keeps, io, over.signal);
  await Promise.race([stopped, allEnded]);
  over.abort();
  await announced;
  const codes = await endAll(running, allEnded, io);
  return stop.aborted ? 0 : Math.max(...codes.map((code) => (code < 0 ? 1 : code)));
}

/** Looks before anything is started, so that one message names every port that is taken. */
async function refuseTakenPorts(nodes: readonly LocalNode[]): Promise<void> {
  const wanted = nodes.flatMap(({ file, config }) => [
    { file, address: config.clientAddress },
    { file, address: config.peerAddress },
  ]);
  const taken = await Promise.all(
    wanted.map(async ({ file, address }) => ((await isFree(address)) ? [] : [`${address} is in use (${file})`])),
  );
  const faults = taken.flat();
  if (faults.length === 0) return;
  throw new UsageFaults('The nodes cannot listen; stop what does, perhaps another cluster of this kind', faults);
}

/** True when `address` can be listened on now. */
export function isFree(address: string): Promise<boolean> {
  const place = parseAddress(address);
  return new Promise((resolve) => {
    const server = createServer();
    server.once('error', () => {
      resolve(false);
    });
    server.listen({ host: place?.host, port: place?.port, exclusive: true }, () => {
      server.close(() => {
        resolve(true);
      });
    });
  });
}

function start(node: LocalNode, io: Io, stop: AbortSignal): Running {
  const main = fileURLToPath(new URL('main.js', import.meta.url));
  const child = spawn(process.execPath, [main, 'start', '--config', node.file], {
    // A node of its own group: Ctrl-C reaches this process alone, which then stops the nodes in order.
    detached: true,
    stdio: ['ignore', 'pipe', 'pipe'],
    env: environmentWithoutSettings(io),
  });
  const name = node.config.nodeId;
  for (const stream of [child.stdout, child.stderr])
    createInterface({ input: stream }).on('line', (line) => {
      io.out(`${toned(name, 'strong', io.colour)}  ${readableLine(line, io.colour)}`);
    });
  const ended = new Promise<number>((resolve) => {
    child.once('error', (error) => {
      io.err(`${name} could not be started: ${error.message}`);
      resolve(-1);
    });
    child.once('exit', (code, signal) => {
      const again = stop.aborted ? '' : `; to start it again: npx fencepost start --config ${node.file}`;
      io.out(`${toned(name, 'strong', io.colour)}  ended (${signal ?? `exit code ${code ?? 0}`})${again}`);
      resolve(code ?? -1);
    });
  });
  return { node, process: child, ended };
}

/** A setting in the environment would be that of every node; the files say what each is. */
function environmentWithoutSettings(io: Io): NodeJS.ProcessEnv {
  const settings = new Set(FIELD_NAMES.map(environmentName));
  return Object.fromEntries(Object.entries(io.environment).filter(([name]) => !settings.has(name)));
}

/** Waits until every node follows a leader and prints how to go on; gives up when `over` aborts. */
async function announce(running: readonly Running[], keeps: Keeps, io: Io, over: AbortSignal): Promise<void> {
  const endpoints = running.map((one) => one.node.config.clientAddress);
  const cluster = io.connect(endpoints, ASK_MS);
  try {
    const until = performance.now() + LEADER_MS;
    for (;;) {
      const nodes = await Promise.all(endpoints.map((endpoint) => ask(cluster, endpoint)));
      if (over.aborted) return;
      const late = performance.now() > until;
      if (nodes.every(serves) || (late && leaderOf(nodes) !== undefined)) {
        io.out(whatToTry(running, nodes, keeps, io));
        return;
      }
      if (late) {
        io.err(`No leader after ${LEADER_MS / 1_000} s; the lines above say what the nodes wait for.`);
        return;
      }
      await pause(100);
    }
  } finally {
    cluster.close();
  }
}

/** True when a node follows a leader, or leads. */
function serves(node: NodeStatus): boolean {
  return 'answered' in node && node.answered.answer.leader !== undefined;
}

function whatToTry(running: readonly Running[], nodes: readonly NodeStatus[], keeps: Keeps, io: Io): string {
  const endpoints = running.map((one) => one.node.config.clientAddress).join(',');
  const usual = endpoints === DEFAULT_ENDPOINTS.join(',');
  const about = pairs(
    [
      ...running.map(({ node, process }, at): readonly [string, Cell] => {
        const state = nodes[at];
        return [
          node.config.nodeId,
          state !== undefined && serves(state)
            ? { text: `process ${process.pid ?? 'unknown'}`, tone: 'good' }
            : { text: 'does not serve; the lines above say why', tone: 'bad' },
        ];
      }),
      ['clients', endpoints],
      ...running.map(({ node }) => [`data of ${node.config.nodeId}`, node.config.dataDir] as const),
    ],
    io.colour,
  );
  const kill =
    running.length > 1
      ? '\n  kill -9 PID   # the process of the node that status calls the leader; then status and acquire again'
      : '';
  const { folder } = keeps;
  const after =
    folder === undefined
      ? 'the data is thrown away then (keep it with --data-dir).'
      : `the data stays, and the next run goes on with it. To begin anew, delete ${folder} after that.`;
  return `
${about}

Try in another terminal:${usual ? '' : `\n  export ${ENDPOINTS_VARIABLE}=${endpoints}`}
  npx fencepost status
  npx fencepost acquire orders/eu --ttl-ms 60000   # prints the fencing token
  npx fencepost get orders/eu
  npx fencepost release orders/eu TOKEN${kill}

Ctrl-C here stops the nodes; ${after}
`;
}

/** Asks every node to stop, waits, and kills what is left. */
async function endAll(running: readonly Running[], allEnded: Promise<number[]>, io: Io): Promise<number[]> {
  for (const one of running) one.process.kill('SIGTERM');
  const late = new AbortController();
  const timer = pause(STOP_MS, 'late' as const, { signal: late.signal }).catch(() => 'ended' as const);
  if ((await Promise.race([allEnded, timer])) === 'late') {
    io.err(`Not stopped after ${STOP_MS / 1_000} s: killed.`);
    for (const one of running) one.process.kill('SIGKILL');
  }
  late.abort();
  return await allEnded;
}
