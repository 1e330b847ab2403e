/** What happens to clients, to their connections, and to the resource. */
import { nextInt } from '../../../src/base/random.js';
import type { TcpProxy } from '../../support/tcp-proxy.js';
import { LONGEST_TTL_MS, pick } from './fault.js';
import type { Fault, FaultPorts } from './fault.js';

/** The kinds of faults. */
export const CLIENT_FAULTS: readonly Fault[] = [
  stop('stop a client, for less than a TTL', 200, 2_500),
  stop('stop a client, for more than a TTL', LONGEST_TTL_MS + 500, LONGEST_TTL_MS + 3_000),
  { name: 'kill a client', strike: kill },
  { name: 'kill the resource', strike: killResource },
  broken('a client cut off', 4, (proxy) => {
    proxy.cut();
  }),
  broken('one-way: what a client sends', 1, (proxy) => {
    proxy.block('toTarget');
  }),
  broken('one-way: what a client is answered', 1, (proxy) => {
    proxy.block('toClient');
  }),
  broken('silence towards a client', 1, (proxy) => {
    proxy.silence();
    proxy.reset();
  }),
  broken('half-open connections of a client', 2, (proxy, { random }) => {
    proxy.choke(nextInt(random, 1, 5_000));
  }),
  broken('delay towards a client', 4, (proxy, { random }) => {
    proxy.delay(nextInt(random, 20, 800));
  }),
  broken('reset towards a client', 4, (proxy) => {
    proxy.reset();
  }),
  { name: 'refuse a client', strike: refuse },
];

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
function broken(name: string, share: number, begin: (proxy: TcpProxy, ports: FaultPorts) => void): Fault {
  const strike = async (ports: FaultPorts): Promise<boolean> => {
    const all = waysOf(ports);
    const one = pick(ports.random, all);
    const proxies = all.filter((proxy) => proxy === one || nextInt(ports.random, 1, 4) <= share);
    for (const proxy of proxies) begin(proxy, ports);
    await spell(ports);
    for (const proxy of proxies) proxy.heal();
    return true;
  };
  return { name, strike };
}

async function refuse(ports: FaultPorts): Promise<boolean> {
  const proxies = waysOf(ports);
  for (const proxy of proxies) {
    await proxy.refuse();
    proxy.reset();
  }
  await spell(ports);
  for (const proxy of proxies) await proxy.listen();
  return true;
}

/** Every other time long enough for a lease to pass on. */
async function spell({ random, pause }: FaultPorts): Promise<void> {
  if (nextInt(random, 0, 1) === 0) await pause(300, 2_500);
  else await pause(LONGEST_TTL_MS + 500, LONGEST_TTL_MS + 4_000);
}

function waysOf({ random, stage }: FaultPorts): TcpProxy[] {
  const { name } = pick(random, stage.workers);
  return stage.mesh.proxies(
    [name],
    stage.nodes.all.map((node) => node.name),
  );
}
