/**
 * Forming (design 3; F1–F3, F14, S2.3, S10): how a history begins, before any election. All initial members, each new,
 * exchange who they are; the one with the smallest node id writes one Genesis, stores it, offers it; each accepts one
 * in its life. A machine of its own beside the replica: events in, effects out. It goes on for as long as the process
 * lives, because every holder offers the record to listed directories that lack it.
 */
import { assert } from '../base/assert.js';
import { digestBytes, digestText } from '../base/digest.js';
import type { BootId, Incarnation, NodeId } from '../base/ids.js';
import {
  BUILD_DATE_UNIX_MS,
  MAX_CLOCK_AFTER_BUILD_MS,
  MAX_FLOOR_AHEAD_US,
  MAX_FORMING_CLOCK_SPREAD_MS,
} from '../base/limits.js';
import type { Revision } from '../base/revision.js';
import { encodeUtf8 } from '../base/utf8.js';
import type { StateLimits } from '../lease/types.js';
import { sameMember } from '../raft/member.js';
import type { Member } from '../raft/types.js';
import type { FormRequest, FormResponse, Genesis, MemberAddress, Time } from './types.js';

/** The newest format of frames and records that this release speaks. */
export const FORMAT = 1;
/** Members that have not answered are asked again this often. */
const ASK_EVERY_MS = 200;
/** A member that refuses to form still answers for this long, so that the others learn why. */
const REFUSE_AFTER_MS = 1_000;
/** How often a member that waits says what it waits for. */
const SAY_EVERY_MS = 10_000;

/** Fixed at creation. */
export interface FormingOptions {
  readonly self: Member;
  readonly boot: BootId;
  readonly cluster: string;
  readonly members: readonly MemberAddress[];
  /** Given `--form`: this start may begin a history. Without it an empty directory waits to be added (S10). */
  readonly form: boolean;
  /** A revision that the first one must exceed; given by an operator. */
  readonly floor: Revision | undefined;
  readonly holdMs: number;
  readonly limits: StateLimits;
  /** Drawn for the case that this member writes the record. */
  readonly incarnation: Incarnation;
  /** The record that the directory holds already. */
  readonly genesis: Genesis | undefined;
}

/** Everything that can happen while forming and after. */
export type FormingEvent =
  | { readonly type: 'tick' }
  /** What a member that was asked answered. */
  | { readonly type: 'answered'; readonly node: NodeId; readonly response: FormResponse }
  /** It could not be asked. */
  | { readonly type: 'unreachable'; readonly node: NodeId }
  /** Another member asks; answered by one `respond` effect with the same id. */
  | { readonly type: 'asked'; readonly id: number; readonly request: FormRequest }
  /** The record is durable and the directory is a member's. */
  | { readonly type: 'stored' };

/** What the caller does, in order. */
export type FormingEffect =
  | { readonly type: 'ask'; readonly node: NodeId; readonly request: FormRequest }
  | { readonly type: 'respond'; readonly id: number; readonly response: FormResponse }
  /** Make the directory a member's with this record; then `stored`. */
  | { readonly type: 'store'; readonly genesis: Genesis }
  /** The replica may start. */
  | { readonly type: 'formed'; readonly genesis: Genesis }
  /** This process must end with this message (exit code 1). */
  | { readonly type: 'refused'; readonly message: string }
  | { readonly type: 'log'; readonly message: string };

/** One member's part in forming. */
export interface Forming {
  step(time: Time, events: readonly FormingEvent[]): FormingEffect[];
}

interface Peer {
  readonly node: NodeId;
  /** The last answer; undefined when the last ask failed. */
  answer: FormResponse | undefined;
  /** An ask has ended, one way or the other. */
  tried: boolean;
  asking: boolean;
  askedAt: number;
}

interface Machine {
  readonly options: FormingOptions;
  readonly peers: readonly Peer[];
  state:
    | { readonly type: 'seeking' }
    | { readonly type: 'storing'; readonly genesis: Genesis }
    | { readonly type: 'member'; readonly genesis: Genesis }
    | { readonly type: 'refusing'; readonly message: string; readonly since: number; told: boolean };
  /** Asks that are answered once the record is stored. */
  readonly waiting: number[];
  said: { readonly text: string; readonly at: number } | undefined;
  time: Time;
  out: FormingEffect[];
}

/** The machine for one start of one directory. */
export function createForming(options: FormingOptions): Forming {
  const { genesis, self } = options;
  const machine: Machine = {
    options,
    peers: options.members
      .filter((member) => member.node !== self.node)
      .map(({ node }) => ({ node, answer: undefined, tried: false, asking: false, askedAt: -Infinity })),
    state: genesis === undefined ? { type: 'seeking' } : { type: 'member', genesis },
    waiting: [],
    said: undefined,
    time: { nowMs: 0, unixMs: 0 },
    out: [],
  };
  if (genesis !== undefined) machine.out.push({ type: 'formed', genesis });
  return {
    step(time, events) {
      machine.time = time;
      for (const event of events) take(machine, event);
      const { out } = machine;
      machine.out = [];
      return out;
    },
  };
}

function take(machine: Machine, event: FormingEvent): void {
  switch (event.type) {
    case 'tick':
      tick(machine);
      return;
    case 'answered': {
      const peer = machine.peers.find((each) => each.node === event.node);
      if (peer === undefined) return;
      peer.asking = false;
      peer.tried = true;
      peer.answer = event.response;
      if (machine.state.type === 'seeking') consider(machine);
      return;
    }
    case 'unreachable': {
      const peer = machine.peers.find((each) => each.node === event.node);
      if (peer === undefined) return;
      peer.asking = false;
      peer.tried = true;
      peer.answer = undefined;
      return;
    }
    case 'asked':
      takeAsk(machine, event.id, event.request);
      return;
    case 'stored': {
      const { state } = machine;
      assert(state.type === 'storing', `a record was stored while ${state.type}`);
      machine.state = { type: 'member', genesis: state.genesis };
      machine.out.push({ type: 'formed', genesis: state.genesis });
      for (const id of machine.waiting.splice(0)) respond(machine, id);
      for (const peer of machine.peers) peer.askedAt = -Infinity;
    }
  }
}

function tick(machine: Machine): void {
  const { state, time } = machine;
  if (state.type === 'refusing') {
    if (!state.told && time.nowMs - state.since >= REFUSE_AFTER_MS) {
      state.told = true;
      machine.out.push({ type: 'refused', message: state.message });
    }
    return;
  }
  for (const peer of machine.peers) {
    if (peer.asking || time.nowMs - peer.askedAt < ASK_EVERY_MS) continue;
    // A holder asks on only for as long as the other is not known to hold the record too.
    if (state.type === 'member' && peer.answer?.genesis !== undefined) continue;
    peer.asking = true;
    peer.askedAt = time.nowMs;
    machine.out.push({ type: 'ask', node: peer.node, request: ownRequest(machine) });
  }
  if (state.type === 'seeking') {
    consider(machine);
    sayWhatIsMissing(machine);
  }
}

/** Another member asks, and perhaps offers a record. */
function takeAsk(machine: Machine, id: number, request: FormRequest): void {
  const { state, options } = machine;
  const { genesis } = request;
  if (state.type === 'seeking' && genesis?.cluster === options.cluster && lists(genesis, options.self))
    store(machine, genesis);
  else if (genesis !== undefined) judgeStranger(machine, genesis, request);
  if (machine.state.type === 'storing') machine.waiting.push(id);
  else respond(machine, id);
}

/**
 * A member of a living cluster of this name asks, and this node's list does not name it: nobody here would ask it, so
 * this is the only moment to learn that its cluster exists (S10). Those listed are judged by their answers.
 */
function judgeStranger(machine: Machine, genesis: Genesis, request: FormRequest): void {
  const { state, options, peers } = machine;
  if (state.type !== 'seeking' || !options.form || genesis.cluster !== options.cluster) return;
  if (peers.some(({ node }) => node === request.hello.node)) return;
  refuse(machine, notListed(machine, genesis, [{ ...request, forming: false }]));
}

function respond(machine: Machine, id: number): void {
  const forming = machine.state.type === 'seeking' && machine.options.form;
  machine.out.push({ type: 'respond', id, response: { ...ownRequest(machine), forming } });
}

function ownRequest(machine: Machine): FormRequest {
  const { options, state, time } = machine;
  const genesis = state.type === 'member' ? state.genesis : undefined;
  return {
    hello: {
      cluster: options.cluster,
      incarnation: genesis?.incarnation ?? '',
      node: options.self.node,
      directory: options.self.directory,
      boot: options.boot,
      format: FORMAT,
    },
    initialMembersDigest: membersDigest(options.members),
    unixUs: Math.floor(time.unixMs * 1_000),
    stateDigest: '',
    genesis,
  };
}

/** Digest of the initial members' names: all must have been given the same. Addresses are apart from identity. */
function membersDigest(members: readonly MemberAddress[]): string {
  const names = members.map(({ node }) => node).sort((left, right) => (left < right ? -1 : 1));
  return digestText(digestBytes(encodeUtf8(names.join('\n'))));
}

function lists(genesis: Genesis, member: Member): boolean {
  return genesis.members.some((each) => sameMember(each, member));
}

function store(machine: Machine, genesis: Genesis): void {
  machine.state = { type: 'storing', genesis };
  machine.out.push({ type: 'store', genesis });
}

function refuse(machine: Machine, message: string): void {
  machine.state = { type: 'refusing', message, since: machine.time.nowMs, told: false };
  machine.out.push({ type: 'log', message });
}

/** Looks at what the others answered: accept a record, refuse, write one, or go on asking. */
function consider(machine: Machine): void {
  const { options, peers } = machine;
  // What one answer means may depend on the others (how many hold a record): everybody is asked once before.
  if (!peers.every(({ tried }) => tried)) return;
  const answers = peers.flatMap(({ answer }) => (answer === undefined ? [] : [answer]));
  const fault = answers.map((answer) => faultOf(machine, answer, answers)).find((each) => each !== undefined);
  if (fault !== undefined) {
    refuse(machine, fault);
    return;
  }
  const offered = answers.find(({ genesis }) => genesis !== undefined)?.genesis;
  if (offered !== undefined) {
    store(machine, offered);
    return;
  }
  const smallest = peers.every(({ node }) => options.self.node < node);
  if (options.form && smallest && answers.length === peers.length && answers.every(({ forming }) => forming))
    write(machine, answers);
}

/** Why this member cannot go on with what `answer` says; undefined when it can. */
function faultOf(machine: Machine, answer: FormResponse, answers: readonly FormResponse[]): string | undefined {
  const { options } = machine;
  const { hello, genesis } = answer;
  if (hello.cluster !== options.cluster) {
    return `${hello.node} belongs to cluster "${hello.cluster}" and this node to "${options.cluster}": correct "cluster" or "members" in the configuration`;
  }
  if (genesis !== undefined) return lists(genesis, options.self) ? undefined : notListed(machine, genesis, answers);
  if (!options.form) return undefined;
  if (answer.initialMembersDigest !== membersDigest(options.members)) {
    return `${hello.node} was started with another list of members than this node: give all of them the same "members"`;
  }
  const apartMs = Math.abs(answer.unixUs / 1_000 - machine.time.unixMs);
  return apartMs > MAX_FORMING_CLOCK_SPREAD_MS ? clocksApart(`${hello.node} and of this node`, apartMs) : undefined;
}

function clocksApart(whose: string, apartMs: number): string {
  return (
    `the wall clocks of ${whose} are ${Math.round(apartMs / 1_000)} s apart and may differ by ${MAX_FORMING_CLOCK_SPREAD_MS / 1_000} s ` +
    'at forming (tokens begin at the clock): set the clocks, then start again'
  );
}

function notListed(machine: Machine, genesis: Genesis, answers: readonly FormResponse[]): string {
  const { self, cluster } = machine.options;
  const known = genesis.members.find(({ node }) => node === self.node);
  const holders = answers.filter((answer) => answer.genesis?.incarnation === genesis.incarnation).length;
  const allSeen = answers.length >= genesis.members.length - 1;
  const majority = Math.floor(genesis.members.length / 2) + 1;
  if (known === undefined) {
    return `cluster "${cluster}" exists already (incarnation ${genesis.incarnation}) and has no member ${self.node}: have it added as a member, or form under another name`;
  }
  const what = `cluster "${cluster}" knows ${self.node} with data directory ${known.directory}, and this one is ${self.directory}: the disk was wiped or replaced, or this is another node's directory`;
  if (allSeen && holders < majority) {
    return (
      `${what}. Only ${holders} of ${genesis.members.length} members hold its record. If the others never did, forming was broken off and nothing was granted: ` +
      'empty the data directories of all members and form again. If they lost it, leases may be in force: put the old disks back, or form again with --hold-ms'
    );
  }
  return `${what}. A wiped member has forgotten its votes and may not come back as the same. The other members go on without it: put the old disk back, or have the member replaced (cluster/README.md, "A disk is lost")`;
}

/** All are there, new and agreed: begin the history. */
function write(machine: Machine, answers: readonly FormResponse[]): void {
  const { options, time } = machine;
  const clocks = [Math.floor(time.unixMs * 1_000), ...answers.map(({ unixUs }) => unixUs)];
  const clock = Math.max(...clocks);
  // Each answer was held against this node's clock; two others may be further apart.
  const apartMs = (clock - Math.min(...clocks)) / 1_000;
  const fault =
    apartMs > MAX_FORMING_CLOCK_SPREAD_MS ? clocksApart('two members', apartMs) : clockFault(clock, options.floor);
  if (fault !== undefined) {
    refuse(machine, fault);
    return;
  }
  const members = [options.self, ...answers.map(({ hello: { node, directory } }) => ({ node, directory }))];
  const base = Math.max(clock, options.floor ?? 0) as Revision;
  machine.out.push({
    type: 'log',
    message: `a new history of cluster "${options.cluster}" begins at revision ${base}, decided by ${base === clock ? 'the clock' : 'the floor'}`,
  });
  store(machine, {
    incarnation: options.incarnation,
    cluster: options.cluster,
    history: { base, start: 0 },
    startTerm: 0,
    holdMs: options.holdMs,
    limits: options.limits,
    members: members.sort((left, right) => (left.node < right.node ? -1 : 1)),
    stateDigest: '',
  });
}

/** F1, S8.4: a clock or a floor that no history may begin with. */
function clockFault(clockUs: number, floor: Revision | undefined): string | undefined {
  const clockMs = clockUs / 1_000;
  if (clockMs < BUILD_DATE_UNIX_MS)
    return 'the wall clock is before the date of this release: set the clock, then start again';
  if (clockMs > BUILD_DATE_UNIX_MS + MAX_CLOCK_AFTER_BUILD_MS)
    return 'the wall clock is more than 20 years after the date of this release: set the clock, then start again';
  if (floor !== undefined && floor > clockUs + MAX_FLOOR_AHEAD_US)
    return `the floor ${floor} is more than 10 years ahead of the clock ${clockUs}: give a floor that was read at a resource`;
  return undefined;
}

/** Says what this member waits for: when that changes, and again now and then. */
function sayWhatIsMissing(machine: Machine): void {
  const { time, said } = machine;
  const text = whatIsMissing(machine);
  if (text === '' || (said?.text === text && time.nowMs - said.at < SAY_EVERY_MS)) return;
  machine.said = { text, at: time.nowMs };
  machine.out.push({ type: 'log', message: text });
}

function whatIsMissing({ options, peers }: Machine): string {
  if (!options.form) {
    return 'the data directory is empty and this node was started without --form: it waits to be added to a cluster. To begin a new cluster, start all members with --form';
  }
  const silent = peers.filter(({ tried, answer }) => tried && answer === undefined).map(({ node }) => node);
  const notForming = peers.filter(({ answer }) => answer !== undefined && !answer.forming).map(({ node }) => node);
  const waits = [
    ...(silent.length > 0 ? [`for ${silent.join(', ')} to answer`] : []),
    ...(notForming.length > 0 ? [`for ${notForming.join(', ')} to be started with --form`] : []),
  ];
  return waits.length === 0 ? '' : `forming waits ${waits.join(' and ')}`;
}
