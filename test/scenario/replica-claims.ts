/** The claims of a lease scenario. */
import type { Domain } from '../../src/base/ids.js';
import { hashState } from '../../src/lease/hash.js';
import { leaseOf, queueOf } from '../../src/lease/lookup.js';
import { commandCodec } from '../../src/wire/command.js';
import type { Claim, Finding } from './claims.js';
import { matches, parsePattern } from './network.js';
import type { ReplicaWorld } from './replica-world.js';

function is(found: string, words: readonly string[]): Finding {
  const claimed = words.join(' ');
  return { holds: found === claimed || found.startsWith(`${claimed} `), found };
}

/** By its first word. */
export const REPLICA_CLAIMS: Readonly<Record<string, Claim<ReplicaWorld>>> = {
  /** `leader A`, `leader none`, `leader some`. */
  leader: (world, words) => {
    const found = world.leader()?.name ?? 'none';
    return { holds: words[0] === 'some' ? found !== 'none' : words[0] === found, found };
  },
  /** `answer x granted 5`, `answer n ended expired`, `answer n pending`: the beginning is enough. */
  answer: (world, [name, ...words]) => is(world.clients.operation(name).outcome, words),
  /** `token x < y`. */
  token: (world, [left, operator, right]) => {
    const [a, b] = [world.clients.operation(left).lease?.token ?? 0, world.clients.operation(right).lease?.token ?? 0];
    return {
      holds: operator === '<' ? a < b : a === b,
      found: `${a - world.clients.base} and ${b - world.clients.base}`,
    };
  },
  /** `domain d at B = free`, `domain d at B = 5`: what B has applied. */
  domain: (world, [domain, , name = '', , ...words]) => {
    const lease = leaseOf(world.node(name).up().context.lease, domain as Domain);
    return is(lease === undefined ? 'free' : String(lease.token - world.clients.base), words);
  },
  /** `queue d at B = 2`: how many wait there, by what B has applied. */
  queue: (world, [domain, , name = '', , ...words]) =>
    is(String(queueOf(world.node(name).up().context.lease, domain as Domain).length), words),
  /** All running members have applied the same and hash the same. */
  'equal-states': (world) => {
    const states = [...world.nodes.values()]
      .filter((node) => node.running !== undefined)
      .map((node) => node.up().context);
    const hashes = states.map(({ applied, lease }) => `${applied}:${hashState(lease)}`);
    return { holds: new Set(hashes).size === 1, found: hashes.join(' ') };
  },
  /** What a log holds: `logged B checkpoint`. */
  logged: (world, [name = '', what = '']) => {
    const view = world.node(name).view();
    const types = view
      .entries(view.anchor.index, view.last)
      .map((entry) => (entry.kind === 'command' ? commandCodec.decode(entry.payload).type : entry.kind));
    return { holds: types.some((type) => type === what), found: types.join(' ') };
  },
  /** `count A>B HB 2`: at most so many were sent by the command before. */
  count: (world, words) => {
    const pattern = parsePattern(words.slice(0, -1));
    const found = world.network.sent.slice(world.sentBefore).filter((packet) => matches(pattern, packet));
    return { holds: found.length <= Number(words.at(-1)), found: String(found.length) };
  },
  /** `revision A = 5`: of the state that A has applied. */
  revision: (world, [name = '', , ...words]) =>
    is(String(world.node(name).up().context.lease.revision - world.clients.base), words),
  running: (world, [name = '']) => {
    const holds = world.node(name).running !== undefined;
    return { holds, found: holds ? 'running' : 'not running' };
  },
  held: (world, words) => {
    const found = world.network.held.filter((packet) => matches(parsePattern(words), packet));
    return { holds: found.length > 0, found: `${found.length} held` };
  },
};
