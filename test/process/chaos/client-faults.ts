/** What happens to clients, to their connections, and to the resource. */
import { nextInt } from '../../../src/base/random.js';
import type { TcpProxy } from '../../support/tcp-proxy.js';
import { LONGEST_TTL_MS, pick, pickSome } from './fault.js';
import type { Fault, FaultPorts } from './fault.js';

/** What happens to the processes. */
export const CLIENT_FAULTS: readonly Fault[] = [
  stop('stop a client, for less than a TTL', 200, 2_500),
  stop('stop a client, for more than a TTL', LONGEST_TTL_MS + 500, LONGEST_TTL_MS + 3_000),
  { name: 'kill a client', strike: kill },
  { name: 'kill the resource', strike: killResource },
];

/** Long enough for leases to pass on. */
const LONG: Spell = [LONGEST_TTL_MS + 1_000, LONGEST_TTL_MS + 5_000];
const SHORT: Spell = [300, 2_500];
const ANY: Spell = [300, LONGEST_TTL_MS + 4_000];

/** What happens to the connections of half of the clients. */
export const CONNECTION_FAULTS: readonly Fault[] = [
  broken('clients cut off, for less than a TTL', SHORT, 4, cut),
  broken('clients cut off, for more than a TTL', LONG, 4, cut),
  broken('one-way: what clients send', ANY, 1, (proxy) => {
    proxy.block('toTarget');
  }),
  broken('one-way: what clients are answered, for more than a TTL', LONG, 4, (proxy) => {
    proxy.block('toClient');
  }),
  broken('silence towards clients', ANY, 1, (proxy) => {
    proxy.silence();
    proxy.reset();
  }),
  broken('half-open connections of clients', ANY, 2, (proxy, { random }) => {
    proxy.choke(nextInt(random, 1, 5_000));
  }),
  broken('delay towards clients', ANY, 4, (proxy, { random }) => {
    proxy.delay(nextInt(random, 20, 800));
  }),
  broken('reset towards clients', SHORT, 4, (proxy) => {
    proxy.reset();
  }),
  { name: 'refuse clients', strike: refuse },
];

/** How long a fault lasts, in milliseconds: at least, and at most. */
type Spell = readonly [number, number];

function cut(proxy: TcpProxy): void {
  proxy.cut();
}

function stop(name: string, lowMs: number, highMs: number): Fault {
  const strike = async ({ random, stage, pause }: FaultPorts): Promise<boolean> => {
    const worker = pick(random, stage.workers);
    worker.signal('SIGSTOP');
    await pause(lowMs, highMs);
    worker.signal('SIGCONT');
    return true;
  };
  return { name, strike };
}

/** Its leases end by time. */
async function kill({ random, stage, pause }: FaultPorts): Promise<boolean> {
  const worker = pick(random, stage.workers);
  await worker.kill();
  await pause(0, 2_000);
  await worker.start();
  return true;
}

/** What it has committed must outlive it. */
async function killResource({ stage, pause }: FaultPorts): Promise<boolean> {
  await stage.resource.kill();
  await pause(0, 500);
  await stage.resource.start();
  return true;
}

/** In `share` of 4 cases on the way to each node, at random. */
function broken(
  name: string,
  [lowMs, highMs]: Spell,
  share: number,
  begin: (proxy: TcpProxy, ports: FaultPorts) => void,
): Fault {
  const strike = async (ports: FaultPorts): Promise<boolean> => {
    const all = waysOfHalf(ports);
    const one = pick(ports.random, all);
    const proxies = all.filter((proxy) => proxy === one || nextInt(ports.random, 1, 4) <= share);
    for (const proxy of proxies) begin(proxy, ports);
    await ports.pause(lowMs, highMs);
    for (const proxy of proxies) proxy.heal();
    return true;
  };
  return { name, strike };
}

async function refuse(ports: FaultPorts): Promise<boolean> {
  const proxies = waysOfHalf(ports);
  for (const proxy of proxies) {
    await proxy.refuse();
    proxy.reset();
  }
  await ports.pause(...ANY);
  for (const proxy of proxies) await proxy.listen();
  return true;
}

/** The ways of half of the clients to all nodes. */
function waysOfHalf({ random, stage }: FaultPorts): TcpProxy[] {
  const clients = pickSome(random, stage.workers, stage.workers.length / 2);
  return stage.mesh.proxies(
    clients.map(({ name }) => name),
    stage.nodes.all.map((node) => node.name),
  );
}
