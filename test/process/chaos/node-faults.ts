/** What happens to node processes. One at a time, so that a majority is left wherever a fault spares one. */
import { nextInt } from '../../../src/base/random.js';
import type { ProcessNode } from '../cluster.js';
import { until } from '../cluster.js';
import { flipBytes } from './byte-flip.js';
import { LONGEST_TTL_MS, pick, pickSome } from './fault.js';
import type { Fault, FaultPorts } from './fault.js';

/** A node gets this long to end, to open its directory, to find a leader; in milliseconds. */
const LIMIT_MS = 120_000;
/** With little traffic a disk may take longer to fill than is worth waiting, in milliseconds. */
const FILL_MS = 20_000;

/** The kinds of faults; those of `disk` need a disk of their own. */
export const NODE_FAULTS: readonly Fault[] = [
  kill('kill one', ({ random, stage }) => [pick(random, stage.nodes.all)]),
  kill('kill the leader', async ({ stage }) => listed(await stage.nodes.leader())),
  kill('kill a majority', ({ random, stage }) => pickSome(random, stage.nodes.all, majority(stage.nodes.all))),
  kill('kill all', ({ stage }) => stage.nodes.all),
  stop('stop the leader, for less than a TTL', 300, 2_500, async ({ stage }) => listed(await stage.nodes.leader())),
  stop('stop the leader, for more than a TTL', LONGEST_TTL_MS + 500, LONGEST_TTL_MS + 2_500, async ({ stage }) =>
    listed(await stage.nodes.leader()),
  ),
  stop('stop one, for more than a TTL', LONGEST_TTL_MS + 500, LONGEST_TTL_MS + 2_500, ({ random, stage }) => [
    pick(random, stage.nodes.all),
  ]),
  stop('stop all', 300, LONGEST_TTL_MS, ({ stage }) => stage.nodes.all),
  { name: 'restart one', strike: restart },
  { name: 'transfer leadership', strike: transfer },
  { name: 'half-open: a node dies and nobody hears it', strike: dieUnheard },
  { name: 'bytes flipped in the files of a stopped node', strike: flip },
];

/** For a stage with a small disk. */
export const DISK_FAULTS: readonly Fault[] = [{ name: 'disk full', strike: fillDisk }];

type Victims = (ports: FaultPorts) => readonly ProcessNode[] | Promise<readonly ProcessNode[]>;

function kill(name: string, choose: Victims): Fault {
  const strike = async (ports: FaultPorts): Promise<boolean> => {
    const victims = await choose(ports);
    await ports.stage.nodes.kill(victims);
    await ports.pause(0, 2_500);
    for (const node of victims) ports.stage.nodes.start(node);
    return victims.length > 0;
  };
  return { name, strike };
}

function stop(name: string, lowMs: number, highMs: number, choose: Victims): Fault {
  const strike = async (ports: FaultPorts): Promise<boolean> => {
    const victims = await choose(ports);
    for (const node of victims) ports.stage.nodes.stop(node);
    if (victims.length > 0) await ports.pause(lowMs, highMs);
    for (const node of victims) ports.stage.nodes.wake(node);
    return victims.length > 0;
  };
  return { name, strike };
}

/** As an operator does it: SIGTERM, and the node hands over and ends with 0. */
async function restart(ports: FaultPorts): Promise<boolean> {
  const { random, stage, pause } = ports;
  const node = pick(random, stage.nodes.all);
  // Before it listens to signals it would end by this one.
  await untilState(ports, node);
  stage.nodes.allow(node, 0);
  stage.nodes.cluster.signal(node, 'SIGTERM');
  await until(`${node.name} to stop`, () => node.child === undefined, LIMIT_MS);
  await pause(0, 1_000);
  stage.nodes.start(node);
  return true;
}

async function transfer({ random, stage }: FaultPorts): Promise<boolean> {
  const node = pick(random, stage.nodes.awake());
  const to = nextInt(random, 0, 1) === 0 ? undefined : pick(random, stage.nodes.all).name;
  // What it answers is the cluster's business: the network may be down at this moment.
  const call = { type: 'transferLeadership', to: to as never } as const;
  return stage.nodes.cluster.call(node, call, 5_000).then(
    () => true,
    () => false,
  );
}

/** Its sockets end, and nobody is told: those who talk to it wait for answers that never come. */
async function dieUnheard({ random, stage, pause }: FaultPorts): Promise<boolean> {
  const node = pick(random, stage.nodes.all);
  const others = stage.mesh.ways.map(({ from }) => from).filter((name) => name !== node.name);
  const proxies = [...stage.mesh.proxies(others, [node.name]), ...stage.mesh.proxies([node.name], others)];
  for (const proxy of proxies) {
    proxy.silence();
    proxy.cut();
  }
  await stage.nodes.kill([node]);
  await pause(500, 5_000);
  for (const proxy of proxies) proxy.heal();
  stage.nodes.start(node);
  return true;
}

/** It must refuse to start, or be unharmed; where it refuses, it gets its files back as they were. */
async function flip(ports: FaultPorts): Promise<boolean> {
  const { random, stage } = ports;
  const node = pick(random, stage.nodes.all);
  await stage.nodes.kill([node]);
  const flipped = await flipBytes(node.dataDir, random);
  stage.tell(`${node.name}: flipped ${flipped.what}`);
  stage.nodes.start(node);
  stage.nodes.allow(node, 1);
  await untilState(ports, node);
  const refused = node.child === undefined;
  stage.tell(`${node.name} ${refused ? 'refused' : 'is unharmed'}`);
  if (refused) {
    await flipped.restore();
    stage.nodes.start(node);
  } else {
    stage.nodes.allow(node);
  }
  await flipped.forget();
  return true;
}

/** A write that fails ends the process with 74; with room again it starts from what it has. */
async function fillDisk(ports: FaultPorts): Promise<boolean> {
  const { stage, pause } = ports;
  const { disk } = stage;
  const node = stage.nodes.all.at(-1);
  if (typeof disk === 'string' || node === undefined) return false;
  // One that is starting may refuse a full disk in other words.
  await untilState(ports, node);
  stage.nodes.allow(node, 74);
  disk.fill();
  const filled = await until(`the disk of ${node.name} to be full`, () => node.child === undefined, FILL_MS).then(
    () => true,
    () => false,
  );
  await pause(0, 1_000);
  disk.empty();
  stage.nodes.allow(node);
  if (filled) stage.nodes.start(node);
  return filled;
}

/** Until the node shows a state, as it does once it has read its directory, or has ended. */
async function untilState({ stage }: FaultPorts, node: ProcessNode): Promise<void> {
  await until(
    `${node.name} to have a state, or to end`,
    async () =>
      node.child === undefined ||
      (await stage.nodes.cluster.call(node, { type: 'getStateHash' }, 2_000).catch(() => undefined)) !== undefined,
    LIMIT_MS,
    () => node.log.slice(-2_000),
  );
}

function listed(node: ProcessNode | undefined): readonly ProcessNode[] {
  return node === undefined ? [] : [node];
}

function majority(nodes: readonly ProcessNode[]): number {
  return Math.floor(nodes.length / 2) + 1;
}
