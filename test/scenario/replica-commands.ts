/** The commands of a lease scenario. */
import type { Call, LeaseRef } from '../../src/base/api.js';
import type { Domain, RequestId } from '../../src/base/ids.js';
import type { Revision } from '../../src/base/revision.js';
import { leaseOf } from '../../src/lease/lookup.js';
import { step } from '../../src/raft/raft.js';
import type { Member } from '../../src/raft/types.js';
import type { Event } from '../../src/replica/types.js';
import { commandCodec } from '../../src/wire/command.js';
import { NETWORK_COMMANDS } from './network-commands.js';
import { parsePattern } from './network.js';
import { formHistory } from './replica-forming.js';
import type { ReplicaNode } from './replica-node.js';
import { genesisOf, HOLDER, START_UNIX_MS } from './replica-node.js';
import type { Operation } from './replica-clients.js';
import type { ReplicaWorld } from './replica-world.js';
import { member, memberText } from './text.js';
import { PLAIN } from '../support/answers.js';

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

/** The lease that the operation named by `of` was granted. */
function leaseIn(world: ReplicaWorld, words: readonly string[]): LeaseRef {
  const { lease } = world.clients.operation(after(words, 'of'));
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
  if (world.clients.operations.has(name)) throw new Error(`there is a ${name} already`);
  const made: Operation = {
    name,
    number: world.clients.nextNumber(),
    node: asked(world, words),
    call,
    sentAt: world.now,
    arrived: false,
    deaf: words.includes('deaf'),
    outcome: 'pending',
    lease: undefined,
  };
  world.clients.operations.set(name, made);
  if (!words.includes('late')) world.arrive([made]);
}

/** Time passes until `name` leads and serves; the others are kept from asking for votes. */
function elect(world: ReplicaWorld, name: string): void {
  const others = [...world.nodes.values()].filter((other) => other.name !== name);
  const holds = others.map((other) => parsePattern([`${memberText(other.member)}>*`, 'PV']));
  world.network.holds.push(...holds);
  for (let ms = 0; world.leader()?.name !== name && ms < 10_000; ms += 10) world.pass(10);
  for (const hold of holds) {
    world.network.holds.splice(world.network.holds.indexOf(hold), 1);
    world.network.take(hold);
  }
  if (world.leader()?.name !== name) throw new Error(`${name} does not lead within 10 s`);
}

/** `{A,B,C}`, with the directories of the n-th history. */
function membersIn(words: readonly string[], history?: number): Member[] {
  const names = (words[0] ?? '').replace(/[{}]/g, '').split(',');
  return names.map((name) => member(name, history));
}

/** A history begins as it does in production; its base comes from the wall clocks. */
function form(world: ReplicaWorld, words: readonly string[]): void {
  const { settings, clients, now } = world;
  const offsets = new Map(words.flatMap((word) => (word.includes('=') ? [word.split('=') as [string, string]] : [])));
  const wallOffset = (node: string): number => Number(offsets.get(node) ?? 0);
  const floor = clients.operations.get(after(words, 'floor') ?? '')?.lease?.token;
  world.histories++;
  const genesis = formHistory({
    ...settings,
    members: membersIn(words, world.histories),
    unixMs: ({ node }) => START_UNIX_MS + now + wallOffset(node),
    floor,
    generation: world.histories,
  });
  world.clients.base = START_UNIX_MS * 1000;
  world.startAll(genesis);
  for (const node of world.nodes.values()) node.wallOffsetMs = wallOffset(node.name);
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
    world.startAll(genesisOf(membersIn(words), world.settings));
    elect(world, 'A');
    world.pass(200);
  },
  /** `form {A,B,C} wall A=-3000 floor x`: new directories; A's clock is off; the first token must exceed that of x. */
  form,
  wipe: (world, words) => {
    world.wipe(words);
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
      holder: HOLDER,
      ttlMs: Number(after(words, 'ttl') ?? 3000),
      metadata: [],
      waitMs: Number(after(words, 'wait') ?? PLAIN.waitMs),
      coolDownMs: Number(after(words, 'cool') ?? PLAIN.coolDownMs),
      slots: Number(after(words, 'slots') ?? PLAIN.slots),
      seenRevision: (seen === undefined ? 0 : world.clients.base + Number(seen)) as Revision,
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
  /** The client of a call is gone. */
  leave: (world, [name]) => {
    world.leave(world.clients.operation(name));
  },
  transfer: (world, words) => {
    ask(world, ['transfer', ...words], { type: 'transferLeadership', to: world.node(words[0] ?? '').member.node });
    world.clients.operations.delete('transfer');
  },
  /** Calls that were on their way arrive, all in one batch. */
  arrive: (world, words) => {
    world.arrive(words.map((name) => world.clients.operation(name)));
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
      leases: [{ domain, token, version, detached: [] }],
      atUnixMs: START_UNIX_MS,
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
    if (first !== undefined) world.arrive([world.clients.operation(first)]);
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
