/** A whole simulated world: machines, members, network, clients and the resource, and everybody who judges them. */
import { AssertionFailed } from '../../src/base/assert.js';
import type { NodeId } from '../../src/base/ids.js';
import { createRandom, nextUint32 } from '../../src/base/random.js';
import type { Member } from '../../src/raft/types.js';
import { between, stream } from './chance.js';
import { Clients } from './clients/clients.js';
import { Coverage } from './coverage.js';
import { ByteDisk } from './disk/byte-disk.js';
import { ObjectDisk } from './disk/object-disk.js';
import type { Outcome, TrialOptions } from './disk/trials.js';
import { Queues } from './judges/queues.js';
import { Watches } from './judges/watches.js';
import { Machine } from './machine.js';
import { Moments } from './moments.js';
import { CLUSTER } from './life.js';
import type { Ending } from './life.js';
import { SimMember } from './member.js';
import { SimNetwork } from './network/network.js';
import type { Fault, Observer, Process, Step } from './observation.js';
import type { Parameters } from './parameters.js';
import type { Surroundings } from './ports.js';
import { createReference } from './reference/relation.js';
import type { RunOptions, RunResult } from './result.js';
import { Resource } from './resource.js';
import { FormingJudge } from './safety/forming.js';
import { countLimits } from './safety/limit-paths.js';
import { Paths } from './safety/paths.js';
import { countWaiting } from './safety/waiting-paths.js';
import { Safety } from './safety/safety.js';
import { Scheduler } from './scheduler.js';
import { Snares } from './snares.js';
import { Story } from './story.js';

/** The wall clock of a machine that is right, at true time 0. */
const START_UNIX_MS = Date.UTC(2026, 11, 2, 12);
/** A process that ended by itself is started again after this, in milliseconds at least and at most. */
const RESTART_MS = [20, 600] as const;

/** See the head of the file. */
export class World {
  readonly parameters: Parameters;
  readonly scheduler = new Scheduler();
  readonly coverage = new Coverage();
  readonly story = new Story(() => this.scheduler.now);
  readonly moments = new Moments(this.scheduler);
  readonly members: readonly SimMember[];
  readonly network: SimNetwork;
  readonly clients: Clients;
  /** For faults that wait for something rare. */
  readonly snares = new Snares();
  failure: RunResult['failure'];
  /** A disk was brought back from a copy: what its member had said is not so any more, and nothing is promised. */
  unjudged = false;
  readonly #judges: NonNullable<RunOptions['judges']>;
  readonly #paths = new Paths(this.coverage);
  readonly #relation: Observer;
  readonly #queues: Queues;
  readonly #watches: Watches;
  /** By incarnation. */
  readonly #safeties = new Map<string, Safety>();
  readonly #forming = new FormingJudge(
    () => this.scheduler.now,
    (fault) => {
      this.#fail('check', fault);
    },
  );
  #runs = 0;
  #revision = 0;

  constructor(parameters: Parameters, judges: NonNullable<RunOptions['judges']>) {
    this.parameters = parameters;
    this.#judges = judges;
    const { seed, nodes, codecs, rates, wallOffsetsMs } = parameters;
    this.#relation = createReference(
      (fault) => {
        this.#watches.referenceEnded();
        this.#fail('relation', fault);
      },
      (command, state, outcome, incarnation) => {
        if (command !== undefined) {
          countWaiting(command, state, this.coverage);
          countLimits(command, state, outcome, parameters.limits, this.coverage);
        }
        this.#watches.applied(incarnation, state);
      },
    );
    this.#watches = new Watches((fault) => {
      this.#fail('check', fault);
    }, this.coverage);
    this.#queues = new Queues((fault) => {
      this.#fail('check', fault);
    }, this.coverage);
    this.network = new SimNetwork(this.surroundings('network'), { ...parameters.network, codecs });
    const names = Array.from({ length: nodes }, (_, at) => `n${at + 1}` as NodeId);
    const addresses = names.map((node) => ({ node, peerAddress: `${node}:7201` }));
    const machines = stream(seed, 'machines');
    this.members = names.map((node, at) => {
      const machine = new Machine(
        this.scheduler,
        rates[at] ?? 1,
        between(machines, 0, 1e6),
        START_UNIX_MS + (wallOffsetsMs[at] ?? 0),
      );
      const around = this.surroundings(`disk ${node}`);
      const disk = codecs
        ? new ByteDisk(around, { node, cluster: CLUSTER }, parameters.disk, this.#trialsOf(node))
        : new ObjectDisk(around, { node, cluster: CLUSTER }, parameters.disk);
      return new SimMember(node, machine, disk, {
        ...this.surroundings(`member ${node}`),
        parameters,
        network: this.network,
        observer: this.#observer(),
        addresses,
        nextRun: (starting) => {
          this.#forming.started(starting.node, starting.machine);
          return ++this.#runs;
        },
        decided: (incarnation) => {
          this.#forming.decided(incarnation);
        },
        ended: (member, ending) => {
          this.#ended(member, ending);
        },
      });
    });
    const around = this.surroundings('clients');
    this.clients = new Clients(
      around,
      { ...parameters.clients, codecs },
      () => this.members,
      new Resource(this.coverage),
      (fault) => {
        this.#fail('check', fault);
      },
      this.#watches,
    );
  }

  /** What a part of the world is given. */
  surroundings(part: string): Surroundings {
    return {
      scheduler: this.scheduler,
      random: stream(this.parameters.seed, part),
      coverage: this.coverage,
      trace: (line, what) => {
        this.story.tell(line, what);
      },
    };
  }

  /** Something that must hold does not. The first one counts. */
  fault(fault: Fault): void {
    this.#fail('check', fault);
  }

  /** Starts a member after some milliseconds, unless it runs then. */
  startLater(member: SimMember, ms: number): void {
    this.scheduler.after(ms, () => {
      if (!member.gone) member.start();
    });
  }

  /** The members are new from here: another history may begin. */
  formingAnew(): void {
    this.#forming.anew();
  }

  /** A member's disk is not what it was. */
  forget(member: SimMember): void {
    const process = member.member;
    if (process === undefined) return;
    for (const safety of this.#safeties.values()) safety.forget({ member: process });
  }

  /** What is asked of the disk of `node` again and again, beside the run. */
  #trialsOf(node: NodeId): TrialOptions {
    return {
      random: stream(this.parameters.seed, `trials ${node}`),
      every: this.parameters.disk.trialEvery,
      coverage: this.coverage,
      afterPowerLoss: (outcome) => {
        const { member, wiped, flipped } = this.members.find((each) => each.node === node) ?? {};
        if (member === undefined || wiped === true || flipped === true) return undefined;
        return this.#startFault(member, outcome);
      },
      report: (fault) => {
        this.fault({ ...fault, text: `${node}: ${fault.text}` });
      },
      threw: (error) => {
        this.threw(error);
      },
    };
  }

  /** What is wrong with what a start of this member would find now. */
  #startFault(member: Member, outcome: Outcome): Fault | undefined {
    const known = [...this.#safeties.values()].find((safety) => safety.knows(member));
    switch (outcome.type) {
      case 'refused':
        return { code: 'REFUSED', text: outcome.message };
      case 'nothing':
        return known && { code: 'DUR', text: 'a start finds no member' };
      case 'found': {
        const text = known?.wouldStart(member, outcome.loaded);
        return text === undefined ? undefined : { code: 'DUR', text };
      }
    }
  }

  /** The replica that leads in the greatest term and serves. */
  leader(): SimMember | undefined {
    let best: { readonly member: SimMember; readonly term: number } | undefined;
    for (const member of this.members) {
      const leadership = member.replica?.context.leadership;
      if (member.paused || leadership?.ready === undefined) continue;
      if (best === undefined || leadership.term > best.term) best = { member, term: leadership.term };
    }
    return best?.member;
  }

  /** Compares the whole states of all running members, by index. */
  compareStates(): void {
    for (const member of this.members) {
      const { replica } = member;
      if (replica === undefined || member.process === undefined) continue;
      this.#safeties.get(replica.context.genesis.incarnation)?.compareNow(member.process, replica.context);
    }
  }

  /** Nobody is asked any more. */
  finish(): void {
    this.clients.finish();
    for (const each of [this.#relation, this.clients.observer]) each.finished?.();
  }

  /** Something was thrown that nobody handles. */
  threw(error: unknown): void {
    const wrong = error instanceof Error ? error : new Error(String(error));
    if (wrong instanceof AssertionFailed) this.asserted(wrong);
    else this.fault({ code: 'NOCRASH', text: wrong.stack ?? wrong.message });
  }

  /** The product asserted something that does not hold. */
  asserted(error: Error): void {
    this.#fail('assertion', { code: 'NOCRASH', text: error.stack ?? error.message });
  }

  #fail(by: NonNullable<RunResult['failure']>['by'], fault: Fault): void {
    if (this.#judges === 'relation' && by === 'check') return;
    if (this.#judges === 'checks' && by === 'relation') return;
    if (this.unjudged) {
      this.coverage.count('broken after a roll-back');
      return;
    }
    this.failure ??= { ...fault, by, at: this.scheduler.now };
  }

  #observer(): Observer {
    // Clients are made after the members.
    let observers: readonly Observer[] | undefined;
    const all = (): readonly Observer[] =>
      (observers ??= [this.#relation, this.#watches, this.#queues, this.#paths, this.clients.observer, this.snares]);
    return {
      started: (process, loaded, context) => {
        const begun = this.#forming.runs(process, this.#revision);
        if (begun !== undefined) {
          this.coverage.count(begun.ahead ? 'history begun' : 'history begun behind an older one');
          this.clients.incarnationChanged(process.genesis.incarnation, begun.ahead);
        }
        this.#opened(process);
        this.#safety(process).started(process, loaded, context);
        for (const each of all()) each.started(process, loaded, context);
      },
      stepped: (step) => {
        this.story.stepped(step);
        this.#safety(step.process).stepped(step);
        for (const each of all()) each.stepped(step);
        this.#note(step);
        this.moments.stepped(step);
      },
      ended: (process) => {
        this.#safety(process).ended();
        for (const each of all()) each.ended(process);
      },
    };
  }

  /** A member's disk was accepted by a start. */
  #opened({ member: { node } }: Process): void {
    const member = this.members.find((each) => each.node === node);
    if (member === undefined) return;
    // It was wiped before the record was written, which lists what came after: it is a member like any other.
    member.wiped = false;
    const left = member.disk.leftOver();
    if (left !== undefined) this.#fail('check', { code: 'LEAK', text: `the disk of ${node} after a start: ${left}` });
  }

  #safety({ genesis }: Process): Safety {
    const known = this.#safeties.get(genesis.incarnation);
    if (known !== undefined) return known;
    const safety = new Safety(
      (fault) => {
        this.#fail('check', fault);
      },
      {
        entry: (entry, command, revision) => {
          this.#revision = Math.max(this.#revision, revision);
          this.#paths.applied(command, entry.term);
        },
        expired: (domain, token, at) => {
          this.#paths.expiryDecided(true);
          this.clients.expired(domain, token, at);
        },
        outlived: () => {
          this.#paths.expiryDecided(false);
        },
      },
    );
    this.#safeties.set(genesis.incarnation, safety);
    return safety;
  }

  #note({ context, process }: Step): void {
    const { base, start } = process.genesis.history;
    const { log } = context.raft;
    this.#revision = Math.max(this.#revision, base + log.anchor.index + log.entries.length - start);
  }

  #ended(member: SimMember, ending: Ending): void {
    const random = createRandom(nextUint32(stream(this.parameters.seed, `${member.node} ${this.scheduler.count}`)));
    const again = between(random, ...RESTART_MS);
    switch (ending.type) {
      case 'stopped':
        this.coverage.count('stopped in order');
        this.startLater(member, again);
        return;
      case 'assertion':
        this.asserted(ending.error);
        return;
      case 'disk': {
        const injected = 'code' in ending.error && (ending.error.code === 'EIO' || ending.error.code === 'ENOSPC');
        if (!injected) this.asserted(ending.error);
        else this.startLater(member, again);
        return;
      }
      case 'refused':
        this.#refused(member, ending, again);
    }
  }

  #refused(member: SimMember, ending: Extract<Ending, { type: 'refused' }>, again: number): void {
    if (ending.where === 'forming' && ending.message.includes('wall clock')) {
      // The operator does what the message says.
      this.coverage.count('forming refused for its clocks');
      for (const each of this.members) each.machine.jumpWall(START_UNIX_MS + this.scheduler.now - each.machine.wallMs);
      this.#forming.clocksSet();
      this.startLater(member, again);
      return;
    }
    if (member.flipped || (member.wiped && ending.where === 'forming')) {
      this.coverage.count(member.wiped ? 'wiped member refused' : 'damaged directory refused');
      member.gone = true;
      return;
    }
    this.fault({ code: 'REFUSED', text: `${member.node}: ${ending.message}` });
  }
}

/**
 * Lets every promise that can settle do so: a tick of Node's comes when no promise has anything left to do. Far cheaper
 * than a turn of the loop.
 */
export function settled(): Promise<void> {
  return new Promise((resolve) => {
    process.nextTick(resolve);
  });
}
