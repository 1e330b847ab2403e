/**
 * The commands of a raft scenario (see README.md for the language). A command changes the world; then
 * everything happens that nobody holds.
 */
import type { Message } from '../../src/raft/types.js';
import * as view from '../../src/raft/view.js';
import { deepFreeze } from './freeze.js';
import { NETWORK_COMMANDS } from './network-commands.js';
import type { SimNode } from './node.js';
import type { RaftWorld } from './raft-world.js';
import { member, parseConfiguration, parseLog, parseMember, parsePosition } from './text.js';

type Command = (world: RaftWorld, words: readonly string[]) => void;

/** The words after `word`, or undefined when it is not there. */
function after(words: readonly string[], word: string): string | undefined {
  const at = words.indexOf(word);
  return at < 0 ? undefined : words[at + 1];
}

/** `first` of the words, which must be there. */
function first(words: readonly string[], what: string): string {
  const [word] = words;
  if (word === undefined) throw new Error(`${what} is missing`);
  return word;
}

function termIn(words: readonly string[]): number {
  const word = words.find((candidate) => /^t\d+$/.test(candidate));
  return word === undefined ? 0 : Number(word.slice(1));
}

function configurationIn(words: readonly string[]): string {
  const at = words.findIndex((word) => word.startsWith('{'));
  return words
    .slice(at)
    .filter((word) => !/^t\d+$/.test(word))
    .join(' ');
}

/** The client's node: `at B`, else the leader. */
function asked(world: RaftWorld, words: readonly string[]): SimNode {
  const at = after(words, 'at');
  const node = at === undefined ? world.leader() : world.node(at);
  if (node === undefined) throw new Error('nobody leads: say at which member');
  return node;
}

/** Ticks `node` until it campaigns or leads; says so when it does not within the greatest time-out. */
function campaign(world: RaftWorld, node: SimNode): void {
  const campaigns = (): boolean => {
    const { raft } = node.up();
    return view.roleName(raft) !== 'follower' && !(view.roleName(raft) === 'candidate' && before);
  };
  const before = view.roleName(node.up().raft) === 'candidate';
  const packets = world.network.sent.length;
  for (let ticks = 0; ticks <= world.settings.electionMaxTicks + 1; ticks++) {
    if (campaigns() || world.network.sent.slice(packets).some((packet) => packet.message.from === node.member)) return;
    world.tick(node);
  }
  world.print(`${node.name} does not campaign`);
}

/** Fires B's election time-out; stickiness of the others has run out by then, their own time-outs have not. */
function elect(world: RaftWorld, words: readonly string[]): void {
  const node = world.node(first(words, 'the member'));
  const others = world.runningNodes().filter((other) => other !== node && !view.isLeader(other.up().raft));
  for (const other of others) while (other.quiet < world.settings.electionMinTicks) world.tick(other);
  campaign(world, node);
}

/** Builds a message that no member of this scenario sends: from an old version, or from before the scenario began. */
function forged(world: RaftWorld, words: readonly string[]): Message {
  const [link = '', kind = ''] = words;
  const [from, to] = link.split('>').map((name) => world.nodes.get(name)?.member ?? parseMember(name));
  if (from === undefined || to === undefined) throw new Error(`not a link: ${link}`);
  const term = termIn(words);
  const last = parsePosition(after(words, 'last') ?? '0@0');
  const prev = parsePosition(after(words, 'prev') ?? '0@0');
  const line = words.join(' ');
  const entries = parseLog(/\[.*\]/.exec(line)?.[0] ?? '[]', prev.index + Number(after(words, 'skip') ?? 0));
  const envelope = { from, to, term };
  switch (kind) {
    case 'RV':
      return {
        ...envelope,
        type: 'vote',
        last,
        attempt: Number(after(words, 'attempt') ?? 1),
        transfer: words.includes('transfer'),
      };
    case 'PV':
      return { ...envelope, type: 'preVote', last, attempt: Number(after(words, 'attempt') ?? 1) };
    case 'AE':
      return {
        ...envelope,
        type: 'append',
        prev,
        entries,
        commit: Number(after(words, 'commit') ?? 0),
        request: Number(after(words, 'request') ?? 1),
      };
    case 'HB':
      return {
        ...envelope,
        type: 'heartbeat',
        commit: Number(after(words, 'commit') ?? 0),
        round: Number(after(words, 'round') ?? 1),
      };
    case 'IS':
      return {
        ...envelope,
        type: 'installSnapshot',
        meta: world.node(from.node).disk.image.cut.meta,
        request: Number(after(words, 'request') ?? 1),
      };
    case 'TN':
      return { ...envelope, type: 'timeoutNow' };
    default:
      throw new Error(`cannot forge a ${kind}`);
  }
}

/** Name → what it does. */
export const COMMANDS: Readonly<Record<string, Command>> = {
  // Set-up
  set: (world, words) => {
    const pairs = words.map((word) => word.split('=') as [string, string]);
    const changed = Object.fromEntries(pairs.map(([name, value]) => [name, Number(value)]));
    for (const name of Object.keys(changed)) if (!(name in world.settings)) throw new Error(`no setting ${name}`);
    world.settings = { ...world.settings, ...changed };
  },
  disk0: (world, words) => {
    const log = parseLog(/\[.*\]/.exec(words.join(' '))?.[0] ?? '[]', 0);
    const vote = after(words, 'vote');
    const image = world.emptyImage({ voters: [], outgoing: [], learners: [] }, termIn(words));
    const hard = { term: termIn(words), vote: vote === undefined ? undefined : parseMember(vote) };
    world.images.set(first(words, 'the member'), { ...image, hard, entries: log });
  },
  nodes: (world, words) => {
    world.startAll(parseConfiguration(configurationIn(words)), termIn(words));
  },
  'A*': (world, words) => {
    world.startAll(parseConfiguration(configurationIn(words)), termIn(words) - 1);
    elect(world, ['A']);
    world.settle();
    if (world.leader()?.name !== 'A') throw new Error('A does not win its first election');
    for (let tick = 0; tick < world.settings.heartbeatTicks; tick++) world.tick(world.node('A'));
  },
  // Clients
  put: (world, words) => {
    const only = after(words, 'onlyInTerm');
    const node = asked(world, words);
    world.clients.ask(first(words, 'the command'), 'put', node, only === undefined ? undefined : Number(only));
  },
  read: (world, words) => {
    world.clients.ask(first(words, 'the name'), 'read', asked(world, words));
  },
  renew: (world, words) => {
    world.clients.ask(first(words, 'the name'), 'renew', asked(world, words));
  },
  // Network
  ...NETWORK_COMMANDS,
  /** `send raw` hands it over as it is, although no wire format could carry it. */
  send: (world, words) => {
    if (words[0] === 'raw') {
      world.deliver(world.network.register(deepFreeze(forged(world, words.slice(1))), undefined));
      return;
    }
    const message = forged(world, words);
    world.send(message, message.type === 'installSnapshot' ? world.node(message.from.node).disk.image.cut : undefined);
  },
  unreachable: (world, words) => {
    const [at = '', to = ''] = words;
    world.node(at).input({ type: 'unreachable', to: world.node(to).member });
  },
  // Elections
  elect,
  campaign: (world, words) => {
    campaign(world, world.node(first(words, 'the member')));
  },
  tick: (world, words) => {
    const names = words.filter((word) => /^[A-Z]$/.test(word));
    const times = Number(words.find((word) => /^\d+$/.test(word)) ?? 1);
    for (let tick = 0; tick < times; tick++) {
      const nodes = names.length === 0 ? world.runningNodes() : names.map((name) => world.node(name));
      for (const node of nodes) if (node.running !== undefined) world.tick(node);
      world.settle();
    }
  },
  /** Ticks B until one tick is left of its election time-out. */
  ripen: (world, words) => {
    const node = world.node(first(words, 'the member'));
    const { timer } = node.up().raft;
    while (timer.elapsed < timer.timeout - 1) world.tick(node);
  },
  transfer: (world, words) => {
    const [to = ''] = words;
    asked(world, words).input({
      type: 'transfer',
      to: to === 'any' ? undefined : (world.nodes.get(to)?.member ?? member(to)),
    });
  },
  peerdown: (world, words) => {
    const [at = '', leader = ''] = words;
    world.node(at).input({ type: 'peerDown', leader: world.node(leader).member, term: termIn(words) });
  },
  stalled: (world, words) => {
    world.node(first(words, 'the member')).input({ type: 'stalled', stalled: words[1] !== 'over' });
  },
  // Disks and processes
  disk: (world, words) => {
    const { disk } = world.node(first(words, 'the member'));
    const what = words[1];
    if (what === 'stall') disk.stalled = true;
    else if (what === 'go') disk.stalled = false;
    else if (what === 'fail') disk.failing = true;
    else throw new Error(`a disk can stall, go or fail, not ${what}`);
  },
  fsync: (world, words) => {
    world.node(first(words, 'the member')).sync();
  },
  crash: (world, words) => {
    const names = words.filter((word) => word !== 'lose');
    for (const name of names) world.crash(world.node(name), words.includes('lose'));
  },
  restart: (world, words) => {
    for (const name of words) {
      const node = world.node(name);
      if (node.running !== undefined) world.crash(node, false);
      node.disk.stalled = false;
      node.disk.failing = false;
      node.start();
    }
  },
  wipe: (world, words) => {
    const node = world.node(first(words, 'the member'));
    world.crash(node, true);
    node.wipe();
    node.start();
  },
  pause: (world, words) => {
    world.node(first(words, 'the member')).paused = true;
  },
  resume: (world, words) => {
    const node = world.node(first(words, 'the member'));
    node.paused = false;
    for (const arrive of node.inbox.splice(0)) arrive();
  },
  // State machine
  applyhold: (world, words) => {
    world.node(first(words, 'the member')).applyHeld = true;
  },
  applygo: (world, words) => {
    const node = world.node(first(words, 'the member'));
    node.applyHeld = false;
    node.applyCommitted();
  },
  /** The worker's report of what it applied comes late. */
  applied: (world, words) => {
    world.node(first(words, 'the member')).input({ type: 'applied', index: Number(words[1]) });
  },
  snap: (world, words) => {
    for (const name of words) world.node(name).cut();
  },
  compact: (world, words) => {
    const node = world.node(first(words, 'the member'));
    const index = Number(words[1]);
    node.disk.compact(index);
    node.input({ type: 'compact', index });
  },
};
