/**
 * One member: raft, lease state machine, lease clock, pending requests, routing and cuts. Events in, effects out; no
 * promise, no timer, no I/O. This file only dispatches: each duty has its own file.
 */
import { assert } from '../base/assert.js';
import { createRandom, nextUint32 } from '../base/random.js';
import { revisionAt } from '../base/revision.js';
import { createState } from '../lease/load.js';
import { createRaft, settle, step } from '../raft/raft.js';
import type { Effect as RaftEffect, RaftOptions } from '../raft/types.js';
import { lastIndex, leaderOf } from '../raft/view.js';
import { applyUpTo, restore } from './applying.js';
import { createCuts, cutIfDue, cutWritten, entryApplied } from './cuts.js';
import { takeDiskFree } from './disk.js';
import { createDueList } from './due.js';
import { followRole, leaderTick } from './leading.js';
import { heardFrom, probeAgain, probed, streamEnded, takeHello } from './peers.js';
import type { CommandCodec } from './ports.js';
import { proposeVoids, roundConfirmed } from './renewal.js';
import { cancelCall, forwardLost, returnResults, routeAll, scanCalls, takeCall, takeForwardResult } from './routing.js';
import { abandon, complete } from './answers.js';
import { serve, serveWaiting } from './serving.js';
import { chunkStaged, chunksEnded, sendSnapshot, snapshotRefused, snapshotSent, takeChunk } from './snapshots.js';
import { log, originKey } from './state.js';
import type { Context, Served } from './state.js';
import { scanTransfers, transferAborted, transferBeforeStop } from './transfer.js';
import type { Effect, Event, Loaded, ReplicaOptions, Time } from './types.js';
import { deliverChanges } from './watch-delivery.js';
import { createWatchdog, watchDisk, watchLoop, writeBegun, writeEnded } from './watchdog.js';
import { createWatching } from './watchers.js';
import { endWatchers, openWatch, scanWatchers, stoppingWatch, watchClosed, watchReady } from './watching.js';

/** A tick that comes late stands for at most this many, so that a node that wakes does not fire all its time-outs. */
const MAX_TICKS_AT_ONCE = 10;
/** A stopping node waits this long for its hand-over and for the calls that it took, in election time-outs. */
const STOP_WAITS = 2;

/** One member of a cluster. */
export interface Replica {
  /**
   * Handles a batch of events and returns what to do, in order. Ticks are handled last: input that waited during a
   * stall is seen before anything expires or times out (design 7).
   */
  step(time: Time, events: readonly Event[]): Effect[];
  /** For status, tests and checks; never changed from outside. */
  readonly context: Readonly<Context>;
}

/** A member with the state that its disk held. */
export function createReplica(options: ReplicaOptions, codec: CommandCodec, loaded: Loaded): Replica {
  const context = createContext(options, codec, loaded);
  return {
    context,
    step(time, events) {
      assert(context.out.length === 0, 'a step begins while another is under way');
      context.time = time;
      handle(context, watchLoop(context));
      const ticks = events.filter((event) => event.type === 'tick');
      for (const event of events) if (event.type !== 'tick') take(context, event);
      if (ticks.length > 0) tick(context);
      finishStep(context);
      const { out } = context;
      context.out = [];
      return out;
    },
  };
}

function createContext(options: ReplicaOptions, codec: CommandCodec, loaded: Loaded): Context {
  const { genesis, snapshot, anchor, entries, hard } = loaded;
  const last = entries.at(-1)?.index ?? anchor.index;
  assert(
    snapshot.index >= anchor.index && snapshot.index <= last,
    `cut at ${snapshot.index} outside the log ${anchor.index}–${last}`,
  );
  const raft = createRaft(raftOptions(options, nextUint32(createRandom(options.seed))), {
    hard,
    snapshot,
    anchor,
    entries,
  });
  const context: Context = {
    options,
    codec,
    genesis,
    raft,
    lease: createState(loaded.summary, genesis.history, revisionAt(genesis.history, snapshot.index), loaded.records),
    applied: snapshot.index,
    appliedTerm: snapshot.term,
    time: { nowMs: 0, unixMs: 0 },
    out: [],
    calls: new Map(),
    callsDue: createDueList(),
    held: 0,
    leadership: undefined,
    completed: [],
    transfers: [],
    peers: new Map(),
    incoming: undefined,
    outgoing: new Map(),
    cuts: createCuts(snapshot.index, anchor.index),
    watchdog: createWatchdog(),
    watching: createWatching(revisionAt(genesis.history, snapshot.index), options.watch),
    diskFree: undefined,
    alarms: new Map(),
    serving: undefined,
    stopping: undefined,
    lastTickAt: undefined,
  };
  for (const entry of entries) if (entry.index <= snapshot.index) entryApplied(context, entry);
  context.cuts.dirtySince = undefined;
  return context;
}

function raftOptions(options: ReplicaOptions, seed: number): RaftOptions {
  const ticks = (ms: number): number => Math.max(1, Math.round(ms / options.tickMs));
  const { self, maxAppendBytes, maxInflightAppends, maxInflightBytes, maxUncommittedBytes, maxUnappliedEntries } =
    options;
  return {
    self,
    heartbeatTicks: ticks(options.heartbeatMs),
    electionMinTicks: ticks(options.electionMinMs),
    electionMaxTicks: ticks(options.electionMaxMs),
    maxAppendBytes,
    maxInflightAppends,
    maxInflightBytes,
    maxUncommittedBytes,
    maxUnappliedEntries,
    seed,
  };
}

function take(context: Context, event: Exclude<Event, { type: 'tick' }>): void {
  switch (event.type) {
    case 'message':
      heardFrom(context, event.message.from.node);
      handle(context, step(context.raft, { type: 'message', message: event.message }));
      return;
    case 'call':
      takeCall(context, event);
      return;
    case 'cancel':
      cancelCall(context, event.id);
      return;
    case 'watch':
      openWatch(context, event);
      return;
    case 'watchReady':
      watchReady(context, event.id);
      return;
    case 'watchClosed':
      watchClosed(context, event.id);
      return;
    case 'forwarded':
      takeForwarded(context, event);
      return;
    case 'forwardCancelled':
      dropForwarded(context, originKey({ type: 'peer', node: event.from, id: event.id }));
      return;
    case 'forwarderLost':
      for (const [key, { origin }] of context.leadership?.served ?? []) {
        if (origin.type === 'peer' && origin.node === event.node) dropForwarded(context, key);
      }
      return;
    case 'forwardResult':
      takeForwardResult(context, event.from, event.id, event.result);
      return;
    case 'forwardLost':
      forwardLost(context, event.node);
      return;
    case 'streamEnded':
      streamEnded(context, event.node);
      return;
    case 'unreachable':
      for (const to of context.genesis.members) {
        if (to.node === event.node) handle(context, step(context.raft, { type: 'unreachable', to }));
      }
      return;
    case 'probed':
      handle(context, probed(context, event.node, event.outcome));
      return;
    case 'hello':
      handle(context, takeHello(context, event.node, event.directory, event.boot));
      return;
    case 'written':
      writeEnded(context, `log ${event.seq}`);
      handle(context, step(context.raft, { type: 'written', seq: event.seq }));
      return;
    case 'cutWritten':
      writeEnded(context, 'cut');
      cutWritten(context, event.index);
      return;
    case 'chunk':
      takeChunk(context, event.from, event.chunk);
      return;
    case 'chunksEnded':
      chunksEnded(context, event.from);
      return;
    case 'staged':
      handle(context, chunkStaged(context, event.request, event.sequence));
      return;
    case 'snapshotSent':
      handle(context, snapshotSent(context, event.to, event.index, event.ok));
      return;
    case 'diskFree':
      takeDiskFree(context, event.bytes);
      return;
    case 'stop':
      if (context.stopping !== undefined) return;
      context.stopping = {
        since: context.time.nowMs,
        handingOver: context.leadership !== undefined && transferBeforeStop(context),
        done: false,
      };
      endWatchers(context, stoppingWatch(context));
  }
}

function tick(context: Context): void {
  const { time, options } = context;
  const since = context.lastTickAt === undefined ? options.tickMs : time.nowMs - context.lastTickAt;
  const ticks = Math.min(MAX_TICKS_AT_ONCE, Math.floor(since / options.tickMs));
  // What is left of a tick counts for the next one; what a long stall left over does not.
  context.lastTickAt =
    ticks === MAX_TICKS_AT_ONCE
      ? time.nowMs
      : (context.lastTickAt ?? time.nowMs - options.tickMs) + ticks * options.tickMs;
  for (let i = 0; i < ticks; i++) handle(context, step(context.raft, { type: 'tick' }));
  handle(context, watchDisk(context));
  if (context.leadership !== undefined) leaderTick(context, context.leadership);
  probeAgain(context);
  scanCalls(context);
  scanTransfers(context);
  scanWatchers(context);
}

/** Gathers what the batch brought about, until nothing more follows from it. */
function finishStep(context: Context): void {
  for (;;) {
    if (context.leadership !== undefined) proposeVoids(context, context.leadership);
    const effects = settle(context.raft);
    handle(context, effects);
    returnResults(context);
    if (effects.length === 0 && context.completed.length === 0) break;
  }
  deliverChanges(context);
  cutIfDue(context);
  if (context.cuts.underWay !== undefined && !context.watchdog.writes.has('cut')) writeBegun(context, 'cut');
  showServing(context);
  stopWhenIdle(context);
}

function handle(context: Context, effects: readonly RaftEffect[]): void {
  // The core is at the end of its step already: nothing of it is handled as leader by a node that stopped leading.
  if (effects.some(({ type }) => type === 'roleChanged')) followRole(context);
  for (const effect of effects) handleOne(context, effect);
  returnResults(context);
}

function handleOne(context: Context, effect: RaftEffect): void {
  switch (effect.type) {
    case 'send':
      context.out.push({ type: 'send', message: effect.message });
      return;
    case 'persist':
      writeBegun(context, `log ${effect.write.seq}`);
      context.out.push({ type: 'persist', write: effect.write });
      return;
    case 'committed':
      applyUpTo(context, effect.index);
      return;
    case 'confirmed':
      if (context.leadership !== undefined) roundConfirmed(context.leadership, effect.round);
      return;
    case 'roleChanged':
      returnResults(context);
      routeAll(context);
      return;
    case 'sendSnapshot':
      sendSnapshot(context, effect);
      return;
    case 'restored':
      restore(context, effect.meta);
      return;
    case 'snapshotRefused':
      snapshotRefused(context);
      return;
    case 'transferAborted':
      transferAborted(context);
      if (context.leadership?.ready !== undefined) serveWaiting(context, context.leadership);
      return;
    case 'notMember': {
      const text =
        `leader ${effect.leader.node} does not list this node with directory ${context.options.self.directory}: it does not campaign. ` +
        'Its disk was replaced or it was removed; have it replaced as a member';
      context.alarms.set('member', text);
      log(context, 'error', text);
      return;
    }
    case 'logShrank': {
      const { member, acknowledged, durable } = effect;
      const text = `the log of ${member.node} ends at ${durable} although it acknowledged ${acknowledged}: it was brought back from a copy; stop it and replace it`;
      context.alarms.set(`shrank ${member.node}`, text);
      log(context, 'error', text, { peer: member.node });
      return;
    }
    case 'proposed':
    case 'pendingRound':
    case 'rejected':
      assert(false, `${effect.type} answers a proposal and reaches nobody here`);
  }
}

function takeForwarded(context: Context, event: Extract<Event, { type: 'forwarded' }>): void {
  const { from, id, term, principal, holdMs, call } = event;
  const { nowMs } = context.time;
  const served: Served = {
    origin: { type: 'peer', node: from, id },
    principal,
    call,
    arrivedAt: nowMs,
    arrivedBehind: lastIndex(context.raft),
    holdUntil: nowMs + holdMs,
    proposed: false,
    done: false,
  };
  // One hop: a node that does not lead says so and passes nothing on (S6). Nor does it serve a copy that was meant for an
  // earlier leadership of its own: the peer may have passed the call to the leader in between, and its client has that
  // answer. What reached the log of an earlier term is decided before a leader answers anything; this would come after.
  if (context.leadership?.term !== term) complete(context, served, { type: 'notLeader', outcome: 'not-done' });
  else serve(context, context.leadership, served);
}

function dropForwarded(context: Context, key: string): void {
  const served = context.leadership?.served.get(key);
  if (served !== undefined) abandon(context, served);
}

/** Tells health when this node begins or stops to be able to serve: it leads and is ready, or knows who leads. */
function showServing(context: Context): void {
  const leader = leaderOf(context.raft)?.node;
  const leads = leader === context.options.self.node;
  const serving =
    context.stopping === undefined && leader !== undefined && (!leads || context.leadership?.ready !== undefined);
  if (context.serving?.serving === serving && context.serving.leader === leader) return;
  context.serving = { serving, leader };
  context.out.push({ type: 'serving', serving, leader });
}

function stopWhenIdle(context: Context): void {
  const { stopping, options, time } = context;
  if (stopping === undefined || stopping.done) return;
  // Not with the end of the leadership: the vote for the next leader is still on its way then.
  if (context.leadership === undefined && leaderOf(context.raft) !== undefined) stopping.handingOver = false;
  const idle = !stopping.handingOver && context.calls.size === 0;
  if (!idle && time.nowMs - stopping.since < STOP_WAITS * options.electionMaxMs) return;
  stopping.done = true;
  context.out.push({ type: 'stopped' });
}
