/** One process under the relation: walks through each step in the order in which the replica promises to handle it. */
import { revisionAt } from '../../../src/base/revision.js';
import type { Command } from '../../../src/lease/commands.js';
import type { Context } from '../../../src/replica/state.js';
import type { Effect, Event, Loaded } from '../../../src/replica/types.js';
import type { Process, Step } from '../observation.js';
import { Answers } from './answers.js';
import { Calls } from './calls.js';
import type { OpenCall } from './calls.js';
import { Cuts } from './cuts.js';
import { leaseKey } from './leader-clock.js';
import { compareLeases, compareLimits } from './lease-compare.js';
import type { LeaseHistory } from './lease-history.js';
import { stateOnDisk } from './lease-model.js';
import type { LeaseModel } from './lease-model.js';
import { sameEntry } from './log.js';
import { leasesOf } from './matching.js';
import { checkOwed } from './owed.js';
import { keyOf, nodeOf } from './members.js';
import { checkSent } from './messages.js';
import { noticeDisk, noticeGap, passTicks, TickCount, writeDone } from './raft-clock.js';
import { adopt, compareRaft, takeWrite } from './raft-compare.js';
import { confirm, leaderDown, receive } from './raft-messages.js';
import { resetFacts, startRaft } from './raft-state.js';
import type { RaftModel } from './raft-state.js';
import { Reign } from './reign.js';
import { SnapshotIn } from './snapshot-in.js';
import type { Moment } from './waits.js';

/** Every so many steps of a process everything is compared, not only what changed. */
const FULL_EVERY = 128;
/** A leader with lower limits than these may refuse its clients' work. */
const LITTLE_BYTES = 100_000;
const FEW_ENTRIES = 1_000;

type Taken = Extract<Event, { readonly type: 'call' | 'forwarded' }>;

/** See the head of the file. */
export class Watched {
  readonly #process: Process;
  readonly #history: LeaseHistory;
  readonly #model: RaftModel;
  readonly #calls = new Calls();
  readonly #answers: Answers;
  readonly #snapshot = new SnapshotIn();
  readonly #cuts: Cuts;
  #leases: LeaseModel;
  #reign: Reign | undefined;
  #step = 0;
  readonly #ticks = new TickCount();
  #stopping = false;
  #logBefore: number;
  /** Calls that came, or could be served first, in the step under way. */
  #fresh: OpenCall[] = [];
  #context: Readonly<Context>;
  #nowMs = 0;
  readonly #fail: (text: string) => void;

  constructor(
    process: Process,
    loaded: Loaded,
    context: Readonly<Context>,
    history: LeaseHistory,
    fail: (text: string) => void,
  ) {
    this.#process = process;
    this.#history = history;
    this.#context = context;
    this.#fail = fail;
    this.#answers = new Answers(this.#calls, fail);
    this.#model = startRaft(process.member, loaded, context);
    this.#logBefore = this.#model.log.last;
    this.#leases = history.stateAt(loaded.snapshot.index) ?? stateOnDisk(loaded);
    compareLeases(this.#leases, context.lease, true, (text) => {
      fail(`started from a table that differs from the log: ${text}`);
    });
    this.#cuts = new Cuts(this.#leases);
    if (context.raft.commit !== this.#model.commit) fail(`starts with ${context.raft.commit} committed`);
  }

  /** Judges one step. */
  stepped({ time, events, effects, context }: Step): void {
    const model = this.#model;
    const from = model.commit;
    this.#begin(time.nowMs, effects, context);
    this.#answers.checkContents(this.#leases);
    let ticked = false;
    for (const event of events) {
      if (event.type === 'tick') ticked = true;
      else this.#take(event);
      this.#advance();
    }
    const ticks = context.raft.ticks - model.ticks;
    this.#ticks.check(ticks, ticked, time.nowMs, context, this.#fail);
    passTicks(model, ticks);
    if (ticked) noticeDisk(model, time.nowMs, context.options.electionMaxMs);
    const own = model.log.last;
    adopt(model, context, this.#fail);
    this.#advance();
    this.#takeRounds();
    this.#cuts.changed(this.#leases.touched);
    for (const effect of effects) this.#carryOut(effect);
    const full = this.#step % FULL_EVERY === 0;
    compareRaft(model, context, from, full, this.#fail);
    this.#cuts.follow(model, context, this.#fail);
    this.#compareLeases(full);
    this.#flag();
    this.#answers.leave({
      model,
      leases: this.#leases,
      calls: this.#calls,
      reign: this.#reign,
      step: this.#step,
      nowMs: this.#nowMs,
      fail: this.#fail,
    });
    this.#judgeLeader(own, ticked);
    this.#calls.settle();
    if (ticked) this.#calls.checkDeadlines(time.nowMs, this.#fail);
  }

  /** What it proposed behind `own`, and what it owes. */
  #judgeLeader(own: number, ticked: boolean): void {
    const model = this.#model;
    if (model.facts.unsure) return;
    const reign = this.#reign;
    const { raft, options } = this.#context;
    const { maxUncommittedBytes, maxUnappliedEntries } = options;
    const moment: Moment = {
      step: this.#step,
      nowMs: this.#nowMs,
      ticked,
      handover: raft.role.type === 'leader' && raft.role.handover !== undefined,
      loaded: (maxUncommittedBytes < LITTLE_BYTES || maxUnappliedEntries < FEW_ENTRIES) && own > model.commit,
      called: reign?.called() ?? new Set(),
    };
    for (let index = own + 1; index <= model.log.last; index++) this.#proposed(index, moment);
    checkOwed({ model, leases: this.#leases, calls: this.#calls, clock: reign?.clock, fail: this.#fail });
    if (model.leading !== undefined && model.ready) reign?.settle(this.#leases, moment);
  }

  #begin(nowMs: number, effects: readonly Effect[], context: Readonly<Context>): void {
    const model = this.#model;
    this.#step++;
    this.#nowMs = nowMs;
    this.#context = context;
    this.#logBefore = model.log.last;
    if (this.#reign?.term !== model.leading?.term) this.#reign = undefined;
    resetFacts(model);
    if (model.proofs.size > 1) for (const term of model.proofs.keys()) if (term < model.term) model.proofs.delete(term);
    const led = model.leading;
    noticeGap(model, nowMs, context.options.electionMaxMs);
    // It stopped leading before it handled anything.
    if (led !== undefined && model.leading === undefined) model.facts.led.clear();
    this.#answers.begin(effects, this.#leases);
  }

  #take(event: Exclude<Event, { readonly type: 'tick' }>): void {
    const model = this.#model;
    switch (event.type) {
      case 'message':
        this.#peer(event.message.from.node).silent = false;
        receive(model, event.message, this.#installed);
        return;
      case 'call':
      case 'forwarded':
        this.#takeCall(event);
        return;
      case 'cancel':
        for (const call of this.#calls.find('', event.id)) this.#calls.end(call);
        return;
      case 'forwardCancelled':
        for (const call of this.#calls.find(event.from, event.id)) this.#calls.dropped(call);
        return;
      case 'forwarderLost':
        for (const call of this.#calls.all()) if (call.from === event.node) this.#calls.dropped(call);
        return;
      case 'forwardResult':
        this.#calls.returned(event.from, event.id, event.result);
        return;
      case 'forwardLost':
        this.#calls.lost(event.node);
        return;
      case 'streamEnded':
        this.#peer(event.node).silent = true;
        return;
      case 'probed':
        if (this.#peer(event.node).silent && event.outcome === 'refused') leaderDown(model, event.node);
        return;
      case 'hello': {
        const peer = this.#peer(event.node);
        const { boot: before } = peer;
        peer.boot = event.boot;
        if (before !== undefined && before !== event.boot && peer.silent) leaderDown(model, event.node);
        return;
      }
      case 'written':
        model.pendingWrites.delete(`log ${event.seq}`);
        writeDone(model, event.seq, this.#fail);
        return;
      case 'cutWritten':
        this.#cuts.written(model, event.index);
        return;
      case 'chunk':
        this.#snapshot.chunk(model, event);
        return;
      case 'chunksEnded':
        this.#snapshot.ended(keyOf(event.from));
        return;
      case 'staged': {
        const message = this.#snapshot.staged(model, event.request, event.sequence);
        if (message !== undefined) receive(model, message, this.#installed);
        return;
      }
      case 'stop':
        this.#stopping = true;
        return;
      case 'unreachable':
      case 'snapshotSent':
      case 'diskFree':
      case 'watch':
      case 'watchReady':
      case 'watchClosed':
    }
  }

  readonly #installed = (index: number): void => {
    const state = this.#history.stateAt(index);
    if (state === undefined) {
      this.#fail(`installs a snapshot at ${index}, which nobody has applied`);
      return;
    }
    this.#leases = state;
    this.#cuts.replaced(this.#model, state);
    compareLeases(state, this.#context.lease, this.#context.applied === index, this.#fail);
  };

  #peer(node: string): { boot: string | undefined; silent: boolean } {
    let peer = this.#model.peers.get(node);
    if (peer === undefined) this.#model.peers.set(node, (peer = { boot: undefined, silent: false }));
    return peer;
  }

  #takeCall(event: Taken): void {
    const { call } = event;
    const model = this.#model;
    const stamp = revisionAt(this.#process.genesis.history, model.commit);
    const seen = call.type === 'acquire' ? call.seenRevision || stamp : undefined;
    const taken = this.#calls.take(event, this.#nowMs, this.#step, this.#logBefore, seen);
    this.#fresh.push(taken);
    for (const lease of leasesOf(taken, this.#leases)) this.#reign?.clock.named(lease, this.#nowMs);
    const served = event.type === 'call' ? !this.#stopping : event.term === model.leading?.term;
    if (!model.ready || !served) return;
    this.#reign?.came(taken);
    if (call.type === 'renew') for (const ref of call.leases) this.#reign?.clock.renew(ref, this.#nowMs);
  }

  /** Applies what has become committed, one entry after the other. */
  #advance(): void {
    const model = this.#model;
    while (this.#leases.index < model.commit) {
      const entry = model.log.at(this.#leases.index + 1);
      if (entry === undefined) {
        // The outcome of the step was taken over, with an installed snapshot in it.
        this.#installed(model.commit);
        return;
      }
      const command = this.#history.applied(entry, this.#decode, this.#fail);
      const outcome = this.#leases.apply(entry.term, command);
      const { leading } = model;
      if (leading?.term === entry.term && model.ready && command !== undefined) {
        this.#reign?.applied(this.#leases, command, outcome, { step: this.#step, nowMs: this.#nowMs });
      }
      if (leading?.termStart === entry.index) this.#becomeReady(entry.term);
      this.#answers.checkContents(this.#leases);
    }
  }

  readonly #decode = (payload: Uint8Array): Command => this.#context.codec.decode(payload);

  /** The own no-op is applied. What waited begins here: nothing of before confirms anything for it. */
  #becomeReady(term: number): void {
    this.#model.ready = true;
    const { waiterGraceMs: graceMs, timedPerTick } = this.#context.options;
    const begun = { nowMs: this.#nowMs, step: this.#step, graceMs, timedPerTick };
    this.#reign = new Reign(term, this.#leases, this.#calls, begun, this.#fail);
    this.#fresh = [...this.#calls.all()];
    for (const call of this.#fresh) {
      call.since = { step: this.#step, index: this.#leases.index };
      // Of an earlier leadership of this member.
      call.flagged.clear();
      for (const lease of leasesOf(call, this.#leases)) this.#reign.clock.named(lease, this.#nowMs);
      if (!call.over) this.#reign.came(call);
    }
  }

  /** Rounds that left at the end of the step. */
  #takeRounds(): void {
    const { leading } = this.#model;
    const { role } = this.#context.raft;
    if (leading === undefined || role.type !== 'leader') return;
    while (leading.issued < role.rounds.issued) {
      leading.issued++;
      if (this.#reign !== undefined) this.#reign.clock.rounds[leading.issued] = this.#step;
    }
    confirm(this.#model);
    if (leading.confirmed !== role.rounds.confirmed) {
      this.#fail(`takes round ${role.rounds.confirmed} for confirmed; ${leading.confirmed} is`);
    }
  }

  #carryOut(effect: Effect): void {
    const model = this.#model;
    switch (effect.type) {
      case 'persist':
        takeWrite(model, effect.write, this.#nowMs, this.#fail);
        return;
      case 'cut':
        this.#cuts.take(model, this.#leases, effect.cut, this.#nowMs, this.#fail);
        return;
      case 'send':
        checkSent(model, effect.message, this.#fail);
        return;
      case 'sendSnapshot': {
        const leading = model.facts.led.get(effect.term);
        if (leading === undefined) this.#fail(`sends a snapshot in term ${effect.term}, which it does not lead`);
        leading?.request.set(keyOf(effect.to), effect.request);
        return;
      }
      case 'stage':
        if (!this.#snapshot.stages(effect.chunk)) this.#fail('stages a chunk that was not expected');
        return;
      case 'forward': {
        const { leaders } = model.facts;
        const nodes = [...leaders].filter((leader) => leader !== model.key).map(nodeOf);
        this.#calls.forwarded(effect, nodes, this.#nowMs, this.#fail);
        return;
      }
      case 'forwardCancel':
        for (const call of this.#calls.find('', effect.id)) {
          // A result that came in the same step was for a call that had been taken back before.
          if (call.forwardedTo === effect.to || call.passed !== undefined) call.attempted = true;
          call.forwardedTo = undefined;
          call.passed = undefined;
        }
        return;
      case 'answer':
      case 'forwardResult':
      case 'probe':
      case 'abortSnapshot':
      case 'refuseChunks':
      case 'chunksDone':
      case 'watchNews':
      case 'watchFailed':
      case 'serving':
      case 'log':
      case 'stopped':
    }
  }

  #compareLeases(full: boolean): void {
    const { touched, touchedIds } = this.#leases;
    compareLimits(this.#leases, this.#context.lease.limits, this.#fail);
    // Whatever changes a queue changes an id.
    if (full || touched.size > 0 || touchedIds.size > 0 || this.#leases.revision !== this.#context.lease.revision) {
      compareLeases(this.#leases, this.#context.lease, full, this.#fail);
      touched.clear();
    }
  }

  /** Notes which leases were flagged when the calls of this step came. */
  #flag(): void {
    if (this.#fresh.length === 0) return;
    const clock = this.#model.ready ? this.#reign?.clock : undefined;
    if (clock !== undefined) {
      for (const call of this.#fresh) {
        for (const lease of leasesOf(call, this.#leases)) if (clock.isFlagged(lease)) call.flagged.add(leaseKey(lease));
      }
    }
    this.#fresh = [];
  }

  /** An entry that this leader appended by itself. */
  #proposed(index: number, moment: Moment): void {
    const entry = this.#model.log.at(index);
    const actual = this.#context.raft.log.entries[index - this.#context.raft.log.anchor.index - 1];
    if (entry?.kind !== 'command' || !sameEntry(entry, actual)) return;
    const command = this.#decode(entry.payload);
    if (this.#reign?.term !== entry.term) {
      this.#fail(`proposes a ${command.type} before its no-op of term ${entry.term} is applied`);
      return;
    }
    this.#reign.proposed(command, index, this.#leases, moment, this.#process.genesis.holdMs);
  }
}
