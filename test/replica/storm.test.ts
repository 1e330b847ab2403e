/** Fifty thousand leases that end together (design 7): in entries of bounded size, and calls go on between them. */
import { expect, it } from 'vitest';
import { MAX_INTERNAL_COMMAND_BYTES } from '../../src/base/limits.js';
import { MAX_DUE_A_TICK } from '../../src/replica/due.js';
import { commandCodec } from '../../src/wire/command.js';
import { MemoryCluster } from '../support/memory-cluster.js';
import type { ClusterCall } from '../support/cluster-node.js';
import { acquireOf } from './helpers.js';
import { outcome } from './queue-kit.js';

const LEASES = 50_000;
const TTL_MS = 20_000;

it('are gone within two seconds, in entries of at most 64 KiB, while acquires are granted all the time', async () => {
  const cluster = new MemoryCluster({ nodes: 1 });
  const leader = await cluster.untilLeader();
  const { context } = cluster.replica(leader);
  for (let at = 0; at < LEASES; at++) {
    cluster.call(leader, acquireOf(`storm/${at}`, { ttlMs: TTL_MS }));
    if (at % 5_000 === 4_999) await cluster.run(20);
  }
  expect(context.lease.leases.size).toBe(LEASES);
  // None is renewed: as if all holders had been in one zone. The process stands still when they are due, so that all are.
  const begunAt = cluster.now;
  await cluster.run(TTL_MS * 1.01 - 100);
  expect(context.lease.leases.size).toBe(LEASES);
  cluster.pause(leader);
  await cluster.run(700);
  cluster.resume(leader);
  const expiries = new Map<number, number>();
  const acquires: ClusterCall[] = [];
  const endBy = cluster.now + 2_000;
  const live = (): number => [...context.lease.leases.keys()].filter((name) => name.startsWith('storm/')).length;
  while (context.lease.leases.size > acquires.length && cluster.now < endBy) {
    acquires.push(cluster.call(leader, acquireOf(`other/${acquires.length}`, { ttlMs: 60_000 })));
    await cluster.run(5);
    for (const [index, { command }] of context.leadership?.pending ?? []) {
      if (command.type === 'expire') expiries.set(index, commandCodec.encode(command).length);
    }
  }
  expect(live()).toBe(0);
  expect(cluster.now).toBeLessThan(endBy);
  expect(begunAt).toBeLessThan(cluster.now);
  // They were many entries, none too large, and not all in one tick.
  expect(Math.max(...expiries.values())).toBeLessThanOrEqual(MAX_INTERNAL_COMMAND_BYTES);
  await cluster.run(20);
  expect(acquires.length).toBeGreaterThan(20);
  for (const call of acquires) {
    expect(outcome(call)).toMatchObject({ type: 'granted' });
    expect((call.answeredAt ?? Infinity) - call.sentAt).toBeLessThan(50);
  }
}, 120_000);

it('are proposed no faster than they are applied', async () => {
  const cluster = new MemoryCluster({ nodes: 3 });
  const leader = await cluster.untilLeader();
  const { context } = cluster.replica(leader);
  const count = 3 * MAX_DUE_A_TICK;
  for (let at = 0; at < count; at++) cluster.call(leader, acquireOf(`storm/${at}`, { ttlMs: TTL_MS }));
  await cluster.run(200);
  expect(context.lease.leases.size).toBe(count);
  const onTheWay = (type: 'expire' | 'checkpoint'): number => {
    const commands = [...(context.leadership?.pending.values() ?? [])].map(({ command }) => command);
    return commands.reduce((sum, command) => sum + (command.type === type ? command.leases.length : 0), 0);
  };
  for (const [type, dueMs] of [
    ['checkpoint', TTL_MS / 2],
    ['expire', TTL_MS * 1.01 + 100],
  ] as const) {
    await cluster.until(`an open ${type}`, () => onTheWay(type) > 0, dueMs);
    // Nothing is committed for a while: shorter than the leader needs to step down.
    cluster.cut(leader, ...[...cluster.nodes.keys()].filter((node) => node !== leader));
    await cluster.run(200);
    expect(context.leadership).toBeDefined();
    expect(onTheWay(type)).toBe(MAX_DUE_A_TICK);
    cluster.heal();
    await cluster.until('all decided', () => context.leadership?.timedOnTheWay === 0, 1_000);
  }
  await cluster.until('all gone', () => context.lease.leases.size === 0, 2_000);
}, 60_000);
