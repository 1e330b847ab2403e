/** What happens between nodes. Blocked bytes are delivered when the fault ends: late, as from a network that has healed. */
import { nextInt } from '../../../src/base/random.js';
import type { TcpProxy } from '../../support/tcp-proxy.js';
import { pick, pickSome } from './fault.js';
import type { Fault, FaultPorts } from './fault.js';

/** The kinds of faults. */
export const NETWORK_FAULTS: readonly Fault[] = [
  between('a node alone', aroundOne, (proxies) => {
    for (const proxy of proxies) proxy.cut();
  }),
  between('the leader alone', aroundLeader, (proxies) => {
    for (const proxy of proxies) proxy.cut();
  }),
  between('a pair apart', aroundPair, (proxies) => {
    for (const proxy of proxies) proxy.cut();
  }),
  between('one-way: what the leader sends', fromLeader, (proxies) => {
    for (const proxy of proxies) proxy.block('toTarget');
  }),
  between('one-way: what the leader is sent', toLeader, (proxies) => {
    for (const proxy of proxies) proxy.block('toTarget');
  }),
  between('one-way: answers on connections', everywhere, (proxies, { random }) => {
    for (const proxy of pickSome(random, proxies, 2)) proxy.block('toClient');
  }),
  between('silence: connections are taken and not answered', aroundOne, (proxies) => {
    for (const proxy of proxies) {
      proxy.silence();
      proxy.reset();
    }
  }),
  between('delay', everywhere, (proxies, { random }) => {
    for (const proxy of proxies) if (nextInt(random, 0, 1) === 0) proxy.delay(nextInt(random, 20, 400));
  }),
  between('half-open: connections stop in the middle', aroundOne, (proxies, { random }) => {
    for (const proxy of proxies) proxy.choke(nextInt(random, 1, 20_000));
  }),
  { name: 'reset', strike: reset },
  { name: 'refuse', strike: refuse },
];

/** `end` undoes whatever was done to the proxies. */
function between(
  name: string,
  choose: (ports: FaultPorts) => Promise<TcpProxy[]> | TcpProxy[],
  begin: (proxies: readonly TcpProxy[], ports: FaultPorts) => void,
): Fault {
  const strike = async (ports: FaultPorts): Promise<boolean> => {
    const proxies = await choose(ports);
    begin(proxies, ports);
    if (proxies.length > 0) await ports.pause(300, 6_000);
    for (const proxy of proxies) proxy.heal();
    return proxies.length > 0;
  };
  return { name, strike };
}

async function reset(ports: FaultPorts): Promise<boolean> {
  for (const proxy of everywhere(ports)) if (nextInt(ports.random, 0, 1) === 0) proxy.reset();
  await ports.pause(0, 300);
  return true;
}

async function refuse(ports: FaultPorts): Promise<boolean> {
  const proxies = aroundOne(ports);
  for (const proxy of proxies) {
    await proxy.refuse();
    proxy.reset();
  }
  await ports.pause(300, 6_000);
  for (const proxy of proxies) await proxy.listen();
  return true;
}

function everywhere({ stage }: FaultPorts): TcpProxy[] {
  const names = stage.nodes.all.map(({ name }) => name);
  return stage.mesh.proxies(names, names);
}

function around(ports: FaultPorts, node: string): TcpProxy[] {
  const names = ports.stage.nodes.all.map(({ name }) => name);
  return [...ports.stage.mesh.proxies([node], names), ...ports.stage.mesh.proxies(names, [node])];
}

function aroundOne(ports: FaultPorts): TcpProxy[] {
  return around(ports, pick(ports.random, ports.stage.nodes.all).name);
}

async function aroundLeader(ports: FaultPorts): Promise<TcpProxy[]> {
  const leader = await ports.stage.nodes.leader();
  return leader === undefined ? [] : around(ports, leader.name);
}

function aroundPair({ random, stage }: FaultPorts): TcpProxy[] {
  const pair = pickSome(random, stage.nodes.all, 2).map(({ name }) => name);
  return stage.mesh.proxies(pair, pair);
}

/** Every node sends on connections that it has opened itself, so these carry all that the leader says and no more. */
async function fromLeader({ stage }: FaultPorts): Promise<TcpProxy[]> {
  const leader = await stage.nodes.leader();
  const names = stage.nodes.all.map(({ name }) => name);
  return leader === undefined ? [] : stage.mesh.proxies([leader.name], names);
}

async function toLeader({ stage }: FaultPorts): Promise<TcpProxy[]> {
  const leader = await stage.nodes.leader();
  const names = stage.nodes.all.map(({ name }) => name);
  return leader === undefined ? [] : stage.mesh.proxies(names, [leader.name]);
}
