/** Counts the rare paths of members, seen from outside: a run that never takes one proves nothing about it. */
import type { Command } from '../../../src/lease/commands.js';
import type { Context } from '../../../src/replica/state.js';
import { isInstalling } from '../../../src/raft/view.js';
import type { Event } from '../../../src/replica/types.js';
import type { Coverage } from '../coverage.js';
import type { Observer, Process, Step } from '../observation.js';

interface Before {
  readonly leading: boolean;
  readonly rounds: number;
  readonly pending: number;
  readonly served: number;
  readonly term: number;
  readonly candidate: boolean;
  readonly stalled: boolean;
  /** An Expire is proposed and not applied. */
  readonly expiring: boolean;
}

const NOTHING: Before = {
  leading: false,
  rounds: 0,
  pending: 0,
  served: 0,
  term: 0,
  candidate: false,
  stalled: false,
  expiring: false,
};

/** See the head of the file. */
export class Paths implements Observer {
  readonly #coverage: Coverage;
  readonly #before = new Map<number, Before>();
  /** First indexes of the writes of each process: a cut elsewhere goes through the middle of one. */
  readonly #firsts = new Map<number, Set<number>>();

  constructor(coverage: Coverage) {
    this.#coverage = coverage;
  }

  started({ run }: Process): void {
    this.#before.set(run, NOTHING);
    this.#firsts.set(run, new Set());
  }

  stepped(step: Step): void {
    for (const event of step.events) if (event.type !== 'tick') this.#event(event, step);
    for (const effect of step.effects) this.#effect(effect, step);
    this.#role(step);
  }

  ended(): void {
    // Counted by whoever ended it.
  }

  /** An entry is applied for the first time. */
  applied(command: Command | undefined, term: number): void {
    if (command === undefined) return;
    switch (command.type) {
      case 'checkpoint':
        this.#count('checkpoint applied');
        return;
      case 'void':
        this.#count('checkpoint voided');
        return;
      case 'expire':
        if (command.term !== term) this.#count('expiry refused by its term');
        return;
      case 'endHold':
        this.#count('hold ended');
        return;
      case 'acquire':
      case 'release':
      case 'withdraw':
      case 'forceRelease':
      case 'endWait':
      case 'endCoolDown':
      case 'limits':
    }
  }

  /** A lease of an Expire that was applied: over, or of another version than its proposer saw. */
  expiryDecided(over: boolean): void {
    this.#count(over ? 'lease expired' : 'expiry refused');
  }

  #count(name: string): void {
    this.#coverage.count(name);
  }

  #event(event: Event, { context }: Step): void {
    switch (event.type) {
      case 'message':
        if (event.message.type === 'timeoutNow') this.#count('leadership transfer begun');
        else if (event.message.term < context.raft.hard.term) this.#count('message of an old term');
        return;
      case 'chunk':
        if (isInstalling(context.raft)) this.#count('chunk during an install');
        return;
      case 'forwarded':
        this.#count(context.leadership === undefined ? 'forwarded to a node that does not lead' : 'call forwarded');
        return;
      case 'forwardResult':
        if (event.result.type === 'notLeader') this.#count('call handed back');
        return;
      case 'probed':
        this.#count(event.outcome === 'refused' ? 'probe refused' : 'probe without a refusal');
        return;
      case 'snapshotSent':
        if (!event.ok) this.#count('snapshot transfer failed');
        return;
      case 'tick':
      case 'call':
      case 'cancel':
      case 'forwardCancelled':
      case 'forwardLost':
      case 'forwarderLost':
      case 'streamEnded':
      case 'unreachable':
      case 'hello':
      case 'written':
      case 'cutWritten':
      case 'chunksEnded':
      case 'staged':
      case 'diskFree':
      case 'watch':
      case 'watchReady':
      case 'watchClosed':
      case 'stop':
    }
  }

  #effect(effect: Step['effects'][number], { process, context }: Step): void {
    switch (effect.type) {
      case 'persist': {
        const { install, cutFrom, entries } = effect.write;
        const firsts = this.#firsts.get(process.run);
        if (install !== undefined) this.#count('snapshot installed');
        if (install !== undefined && context.lease.queues.size > 0) this.#count('snapshot installed with waiters');
        if (cutFrom !== undefined) this.#count('conflict cut');
        if (cutFrom !== undefined && firsts?.has(cutFrom) === false) this.#count('conflict cut inside a block');
        const [first] = entries;
        if (first !== undefined) firsts?.add(first.index);
        return;
      }
      case 'send': {
        const { message } = effect;
        if (message.type === 'preVoteReply' && !message.granted) this.#count('pre-vote refused');
        else if (message.type === 'voteReply' && !message.granted) this.#count('vote refused');
        else if (message.type === 'appendReply' && message.result.type === 'conflict') this.#count('append refused');
        else if (message.type === 'vote' && message.transfer) this.#count('vote by hand-over');
        return;
      }
      case 'sendSnapshot':
        this.#count('snapshot sent');
        return;
      case 'refuseChunks':
        this.#count('chunk refused');
        return;
      case 'abortSnapshot':
        this.#count('snapshot aborted');
        return;
      case 'answer':
      case 'forwardResult': {
        const { result } = effect;
        if (result.type === 'failure') this.#count(`answer ${result.failure.reason}`);
        else if (result.type === 'answer' && result.answer.type === 'acquire') {
          const { outcome } = result.answer;
          if (outcome.type === 'notGranted' && outcome.reason === 'recovering') this.#count('recovering');
          else if (outcome.type === 'ended') this.#count('acquire of an ended request');
        }
        return;
      }
      case 'log':
        if (effect.message.includes('brought back from a copy')) this.#count('log shrank alarm');
        return;
      case 'cut':
        this.#count('cut');
        if (context.raft.log.anchor.index > 0) this.#count('cut with a compacted log');
        return;
      case 'forward':
      case 'forwardCancel':
      case 'probe':
      case 'stage':
      case 'chunksDone':
      case 'serving':
      case 'watchNews':
      case 'watchFailed':
      case 'stopped':
    }
  }

  #role({ process, context }: Step): void {
    const { run } = process;
    const before = this.#before.get(run) ?? NOTHING;
    const { raft, leadership, watchdog } = context;
    const leading = leadership !== undefined;
    const term = raft.hard.term;
    if (leading && !before.leading) {
      this.#count('leader elected');
      if (context.lease.queues.size > 0) this.#count('leader elected while somebody waits');
      if (context.lease.coolDowns.size > 0) this.#count('leader elected while a domain is closed');
    }
    if (before.leading && (!leading || term !== before.term)) {
      this.#count('leader stepped down');
      if (before.rounds > 0) this.#count('round failed by deposition');
      if (before.pending > 0) this.#count('proposal lost its leader');
      if (before.served > 0) this.#count('call lost its leader');
      if (before.expiring) this.#count('expiry lost its leader');
      if (term === before.term) this.#count('leader stepped down within its term');
    }
    const candidate = raft.role.type === 'candidate';
    if (candidate && !before.candidate) this.#count('campaign');
    if (before.candidate && candidate && term > before.term) this.#count('campaign without a winner');
    if (watchdog.stalled && !before.stalled) this.#count('stall noticed');
    const now: Before = {
      leading,
      rounds: leadership?.rounds.length ?? 0,
      pending: leadership?.pending.size ?? 0,
      served: leadership?.served.size ?? 0,
      term,
      candidate,
      stalled: watchdog.stalled,
      expiring: hasExpire(leadership),
    };
    this.#before.set(run, now);
  }
}

function hasExpire(leadership: Context['leadership']): boolean {
  for (const { command } of leadership?.pending.values() ?? []) if (command.type === 'expire') return true;
  return false;
}
