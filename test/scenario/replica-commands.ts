/** The commands and claims of a lease scenario. */
import type { Call, LeaseRef } from '../../src/base/api.js';
import type { Domain, RequestId } from '../../src/base/ids.js';
import type { Revision } from '../../src/base/revision.js';
import { leaseOf } from '../../src/lease/lookup.js';
import { hashState } from '../../src/lease/hash.js';
import { step } from '../../src/raft/raft.js';
import type { Event } from '../../src/replica/types.js';
import { commandCodec } from '../../src/wire/command.js';
import { NETWORK_COMMANDS } from './network-commands.js';
import { matches, parsePattern } from './network.js';
import type { ReplicaNode } from './replica-node.js';
import type { Operation, ReplicaWorld } from './replica-world.js';

/** An event that changes nothing: the replica goes through the end of its turn. */
const NOTHING: Event = { type: 'cancel', id: 0 };

type Command = (world: ReplicaWorld, words: readonly string[]) => void;

function after(words: readonly string[], word: string): string | undefined {
  const at = words.indexOf(word);
  return at < 0 ? undefined : words[at + 1];
}

function asked(world: ReplicaWorld, words: readonly string[]): ReplicaNode {
  const at = after(words, 'at');
  const node = at === undefined ? world.leader() : world.node(at);
  if (node === undefined) throw new Error('nobody leads: say at which member');
  return node;
}

function operation(world: ReplicaWorld, name: string | undefined): Operation {
  const found = world.operations.get(name ?? '');
  if (found === undefined) throw new Error(`nobody asked for ${String(name)}`);
  return found;
}

/** The lease that the operation named by `of` was granted. */
function leaseIn(world: ReplicaWorld, words: readonly string[]): LeaseRef {
  const { lease } = operation(world, after(words, 'of'));
  if (lease === undefined) throw new Error(`${String(after(words, 'of'))} was granted nothing`);
  return { domain: lease.domain, token: lease.token };
}

/** A request id that can be told by its name. */
function requestId(name: string): RequestId {
  const hex = Array.from(name, (letter) => letter.charCodeAt(0).toString(16)).join('');
  return `00000000-0000-4000-8000-${hex.padStart(12, '0')}` as RequestId;
}

/** Registers a call; it leaves at once unless the scenario says `late`. */
function ask(world: ReplicaWorld, words: readonly string[], call: Call): void {
  const [name = ''] = words;
  if (world.operations.has(name)) throw new Error(`there is a ${name} already`);
  const made: Operation = {
    name,
    number: world.nextNumber(),
    node: asked(world, words),
    call,
    sentAt: world.now,
    arrived: false,
    deaf: words.includes('deaf'),
    outcome: 'pending',
    lease: undefined,
  };
  world.operations.set(name, made);
  if (!words.includes('late')) world.arrive([made]);
}

/** Time passes until `name` leads and serves; the others are kept from asking for votes. */
function elect(world: ReplicaWorld, name: string): void {
  const others = [...world.nodes.keys()].filter((other) => other !== name);
  const holds = others.map((other) => parsePattern([`${other}>*`, 'PV']));
  world.network.holds.push(...holds);
  for (let ms = 0; world.leader()?.name !== name && ms < 10_000; ms += 10) world.pass(10);
  for (const hold of holds) {
    world.network.holds.splice(world.network.holds.indexOf(hold), 1);
    world.network.take(hold);
  }
  if (world.leader()?.name !== name) throw new Error(`${name} does not lead within 10 s`);
}

/** Name → what it does. */
export const REPLICA_COMMANDS: Readonly<Record<string, Command>> = {
  ...NETWORK_COMMANDS,
  /** `set finishedRequests=3 holdMs=1000`, before the members start. */
  set: (world, words) => {
    for (const word of words) {
      const [name = '', value] = word.split('=');
      if (!(name in world.settings)) throw new Error(`no setting ${name}`);
      Object.assign(world.settings, { [name]: Number(value) });
    }
  },
  /** `A* {A,B,C}`: A is the first to ask for votes, leads and serves. */
  'A*': (world, words) => {
    world.startAll((words[0] ?? '').replace(/[{}]/g, '').split(','));
    elect(world, 'A');
    world.pass(200);
  },
  /** Time passes. */
  run: (world, words) => {
    world.pass(Number(words[0]));
  },
  elect: (world, words) => {
    elect(world, words[0] ?? '');
  },
  acquire: (world, words) => {
    const [name = '', domain = ''] = words;
    const seen = after(words, 'seen');
    ask(world, words, {
      type: 'acquire',
      domain: domain as Domain,
      requestId: requestId(after(words, 'id') ?? name),
      holder: 'client',
      ttlMs: Number(after(words, 'ttl') ?? 3000),
      metadata: [],
      seenRevision: (seen === undefined ? 0 : world.base + Number(seen)) as Revision,
    });
  },
  renew: (world, words) => {
    ask(world, words, { type: 'renew', leases: [leaseIn(world, words)] });
  },
  unlock: (world, words) => {
    ask(world, words, { type: 'release', lease: leaseIn(world, words) });
  },
  withdraw: (world, words) => {
    const [, domain = '', id = ''] = words;
    ask(world, words, { type: 'withdraw', domain: domain as Domain, requestId: requestId(id) });
  },
  verify: (world, words) => {
    ask(world, words, { type: 'verify', lease: leaseIn(world, words), freshness: 'linearizable' });
  },
  get: (world, words) => {
    ask(world, words, { type: 'get', domain: (words[1] ?? '') as Domain, freshness: 'linearizable' });
  },
  transfer: (world, words) => {
    ask(world, ['transfer', ...words], { type: 'transferLeadership', to: world.node(words[0] ?? '').member.node });
    world.operations.delete('transfer');
  },
  /** Calls that were on their way arrive, all in one batch. */
  arrive: (world, words) => {
    world.arrive(words.map((name) => operation(world, name)));
  },
  /** An Expire as a deposed leader would pass it on: in the log of the present leader, with the older term in it. */
  'old-expire': (world, words) => {
    const { domain, token } = leaseIn(world, words);
    const node = asked(world, []);
    const { raft, lease } = node.up().context;
    const version = leaseOf(lease, domain)?.version ?? 0;
    const payload = commandCodec.encode({
      type: 'expire',
      term: raft.hard.term - 1,
      leases: [{ domain, token, version }],
    });
    step(raft, { type: 'propose', payload, exempt: true });
    world.step(node, [NOTHING]);
  },
  /** `disk A stall`, `disk A go`, `disk A fail EIO`, `disk A fail ENOSPC`. */
  disk: (world, [name = '', what, code]) => {
    const node = world.node(name);
    if (what === 'fail' && (code === 'EIO' || code === 'ENOSPC')) node.running?.store.fail(code);
    else if (what === 'stall' || what === 'go') node.stalled = what === 'stall';
    else throw new Error('a disk can stall, go, fail EIO or fail ENOSPC');
  },
  /** `chunk hold`, `chunk go`; `chunk c2` and `chunk c2 damaged` deliver a held one; `chunk break A>C`. */
  chunk: (world, [what = '', how = '']) => {
    if (what === 'hold' || what === 'go') world.transfers.held = what === 'hold';
    else if (what === 'break') {
      const [from = '', to = ''] = how.split('>');
      world.transfers.broken(world.node(from), world.node(to));
    } else world.transfers.deliver(what, how === 'damaged');
  },
  fsync: (world, words) => {
    world.sync(world.node(words[0] ?? ''));
  },
  crash: (world, words) => {
    for (const name of words) if (name !== 'lose') world.crash(world.node(name), words.includes('lose'));
  },
  restart: (world, words) => {
    for (const name of words) {
      const node = world.node(name);
      if (node.running !== undefined) world.crash(node, false);
      world.start(node);
    }
  },
  /** The wall clock jumps by so many milliseconds. */
  wall: (world, words) => {
    world.node(words[0] ?? '').wallOffsetMs += Number(words[1]);
  },
  pause: (world, words) => {
    world.node(words[0] ?? '').paused = true;
  },
  /** Goes on. `clock-first`: it looks at its clock before it takes what waits; `first n`: it takes call n before. */
  resume: (world, words) => {
    const node = world.node(words[0] ?? '');
    node.paused = false;
    const waiting = node.inbox.splice(0);
    const first = after(words, 'first');
    if (first !== undefined) world.arrive([operation(world, first)]);
    if (words.includes('clock-first')) {
      world.step(node, [{ type: 'tick' }]);
      for (const event of waiting) world.step(node, [event]);
    } else world.step(node, [{ type: 'tick' }, ...waiting]);
  },
  /** Writes the state as it is applied now into the table; the log behind it goes. */
  snap: (world, words) => {
    for (const name of words) {
      const { context } = world.node(name).up();
      context.cuts.dirtySince = -Infinity;
      world.step(world.node(name), [NOTHING]);
    }
  },
};

interface Finding {
  readonly holds: boolean;
  readonly found: string;
}
type Claim = (world: ReplicaWorld, words: readonly string[]) => Finding;

function is(found: string, words: readonly string[]): Finding {
  const claimed = words.join(' ');
  return { holds: found === claimed || found.startsWith(`${claimed} `), found };
}

const CLAIMS: Readonly<Record<string, Claim>> = {
  /** `leader A`, `leader none`, `leader some`. */
  leader: (world, words) => {
    const found = world.leader()?.name ?? 'none';
    return { holds: words[0] === 'some' ? found !== 'none' : words[0] === found, found };
  },
  /** `answer x granted 5`, `answer n ended expired`, `answer n pending`: the beginning is enough. */
  answer: (world, [name, ...words]) => is(operation(world, name).outcome, words),
  /** `token x < y`. */
  token: (world, [left, operator, right]) => {
    const [a, b] = [operation(world, left).lease?.token ?? 0, operation(world, right).lease?.token ?? 0];
    return { holds: operator === '<' ? a < b : a === b, found: `${a - world.base} and ${b - world.base}` };
  },
  /** `domain d at B = free`, `domain d at B = 5`: what B has applied. */
  domain: (world, [domain, , name = '', , ...words]) => {
    const lease = leaseOf(world.node(name).up().context.lease, domain as Domain);
    return is(lease === undefined ? 'free' : String(lease.token - world.base), words);
  },
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
    const { anchor, last, entries } = world.node(name).view();
    const types = entries(anchor.index, last).map((entry) =>
      entry.kind === 'command' ? commandCodec.decode(entry.payload).type : entry.kind,
    );
    return { holds: types.some((type) => type === what), found: types.join(' ') };
  },
  /** `count A>B HB 2`: at most so many were sent by the command before. */
  count: (world, words) => {
    const pattern = parsePattern(words.slice(0, -1));
    const found = world.network.sent.slice(world.sentBefore).filter((packet) => matches(pattern, packet));
    return { holds: found.length <= Number(words.at(-1)), found: String(found.length) };
  },
  running: (world, [name = '']) => {
    const holds = world.node(name).running !== undefined;
    return { holds, found: holds ? 'running' : 'not running' };
  },
  held: (world, words) => {
    const found = world.network.held.filter((packet) => matches(parsePattern(words), packet));
    return { holds: found.length > 0, found: `${found.length} held` };
  },
};

/** Undefined when the claim holds, else why not. */
export function replicaClaim(world: ReplicaWorld, words: readonly string[]): string | undefined {
  const negated = words[0] === 'not';
  const [name = '', ...rest] = negated ? words.slice(1) : words;
  const claim = CLAIMS[name];
  if (claim === undefined) throw new Error(`no claim "${name}"`);
  const { holds, found } = claim(world, rest);
  return holds !== negated ? undefined : `expect ${words.join(' ')}: found ${found}`;
}
