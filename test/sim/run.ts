/**
 * One run of one seed: a safety phase, in which anything may happen and nothing wrong may be done; then everything is
 * healed, and the cluster must converge and serve within a bound; then the clients stop, and nothing may be left over.
 */
import { between, stream } from './chance.js';
import { planFaults } from './faults.js';
import { Inflictor } from './inflict.js';
import { parametersOf } from './profiles/draw.js';
import type { RunOptions, RunResult } from './result.js';
import { settled, World } from './world.js';

/** Service within so many election time-outs after everything was healed, and as many TTLs. */
const LIVE_ELECTIONS = 40;
const LIVE_TTLS = 3;

/** A watcher, and a node, that hears nothing of the other gives it up after 15 s, by its own clock, and some. */
const WATCH_SILENCE_MS = 20_000;
/** A process that was started listens after this, in milliseconds, unless its disk is slow. */
const LISTENING_MS = 10;
/** Clients that are told to stop begin to within so many milliseconds. */
const STOPPING_MS = 20;
/** Tasks between two turns of Node's loop. */
const TURN_EVERY = 500;

/** Runs `seed`. Equal seeds on equal sources give equal results. Never rejects. */
export async function runSeed(seed: number, options: RunOptions = {}): Promise<RunResult> {
  const run = new Run(seed, options);
  const onError = (error: unknown): void => {
    run.threw(error);
  };
  process.on('unhandledRejection', onError);
  process.on('uncaughtException', onError);
  try {
    await run.go();
  } catch (error) {
    run.threw(error);
  } finally {
    process.off('unhandledRejection', onError);
    process.off('uncaughtException', onError);
  }
  return run.result();
}

class Run {
  readonly #seed: number;
  readonly #options: RunOptions;
  readonly #world: World;
  readonly #inflictor: Inflictor;
  readonly #faults: readonly string[];

  constructor(seed: number, options: RunOptions) {
    this.#seed = seed;
    this.#options = options;
    const parameters = parametersOf(seed);
    this.#world = new World(parameters, options.judges ?? 'all');
    this.#inflictor = new Inflictor(this.#world);
    const plan = planFaults(parameters).filter(({ number }) => options.without?.has(number) !== true);
    for (const fault of plan) {
      this.#world.scheduler.after(fault.at, () => {
        this.#inflictor.inflict(fault);
      });
    }
    this.#faults = plan.map(
      ({ number, at, kind, ms }) => `${number}: ${kind} at ${at.toFixed(0)} ms for ${ms.toFixed(0)} ms`,
    );
  }

  async go(): Promise<void> {
    const world = this.#world;
    const { startsMs, firstStartsLast, durationMs, replica, clients } = world.parameters;
    const starts = stream(this.#seed, 'starts');
    for (const [at, member] of world.members.entries()) {
      const ms = between(starts, 0, startsMs);
      world.startLater(member, firstStartsLast && at === 0 ? startsMs + LISTENING_MS : ms);
    }
    world.clients.start();
    await this.#runUntil(durationMs, () => false);
    // An exception that nobody handled is known now.
    await new Promise((resolve) => setImmediate(resolve));
    this.#inflictor.heal();
    world.story.tell('heal');
    const ttl = clients.ttlMs[1];
    const bound = LIVE_ELECTIONS * replica.electionMaxMs + LIVE_TTLS * ttl;
    const lastMs = 3 * ttl + clients.waitMs[1] + clients.coolDownMs[1] + bound;
    await this.#demand('a leader serves', bound, () => world.leader() !== undefined);
    // What so many clients ask for may be more than this world can do; what one asks for may not.
    world.clients.stop();
    await this.#runUntil(world.scheduler.now + STOPPING_MS, () => false);
    const probe = world.clients.probe();
    // A worker's release is repeated for as long as the lease can live.
    await this.#demand('every client has ended', bound + 30_000, () => world.clients.idle);
    await this.#demand('a fresh client acquires, renews and releases', bound, () => probe.done);
    await this.#demand('every call has ended', bound + 2_000, () => this.#idle());
    if (world.parameters.toTheLastLease)
      await this.#demand('every lease, wait and cool-down has ended', lastMs, () => this.#empty());
    await this.#demand('every member has applied the same', bound, () => this.#converged());
    // One whose connection was given up without a word hears nothing for as long as the client waits.
    await this.#demand(
      'every watcher knows every change',
      bound + WATCH_SILENCE_MS,
      () => world.clients.watchersKnowAll,
    );
    world.clients.endWatchers();
    await this.#demand('every watcher has closed', bound, () => world.clients.watchersIdle);
    await this.#demand('no node keeps a watch', WATCH_SILENCE_MS, () => this.#unwatched());
    if (world.failure !== undefined) return;
    world.compareStates();
    world.finish();
  }

  threw(error: unknown): void {
    this.#world.threw(error);
  }

  result(): RunResult {
    const { failure, scheduler, story, coverage, clients } = this.#world;
    return {
      seed: this.#seed,
      failure,
      digest: story.digest,
      events: scheduler.count,
      grants: clients.grants,
      counts: Object.fromEntries([...coverage.counts].sort(([left], [right]) => (left < right ? -1 : 1))),
      trace: failure !== undefined || this.#options.trace === true ? story.lines() : [],
      faults: this.#faults,
    };
  }

  async #runUntil(end: number, condition: () => boolean): Promise<void> {
    const { scheduler } = this.#world;
    while (this.#world.failure === undefined && !condition()) {
      if (!scheduler.runNext(end)) return;
      await settled();
      // Node tells of rejections that nobody handles, and hears its parent, in a turn of the loop only.
      if (scheduler.count % TURN_EVERY === 0) await new Promise((resolve) => setImmediate(resolve));
    }
  }

  /** LIVE: `condition` holds within `limitMs`. */
  async #demand(what: string, limitMs: number, condition: () => boolean): Promise<void> {
    const world = this.#world;
    if (world.failure !== undefined) return;
    await this.#runUntil(world.scheduler.now + limitMs, condition);
    if (!condition())
      world.fault({ code: 'LIVE', text: `not within ${Math.round(limitMs)} ms after healing: ${what}` });
  }

  /** Nothing is under way between the members. */
  #converged(): boolean {
    const end = this.#world.leader()?.replica?.context.applied;
    return this.#world.members.every((member) => {
      if (member.gone) return true;
      const context = member.replica?.context;
      if (context === undefined) return false;
      const { log } = context.raft;
      return context.applied === end && log.anchor.index + log.entries.length === end;
    });
  }

  /** BOUND: nothing waits for anything. */
  #idle(): boolean {
    return this.#world.members.every((member) => {
      const context = member.replica?.context;
      if (context === undefined) return member.gone;
      const { calls, held, completed, transfers, leadership, incoming } = context;
      const open =
        leadership === undefined ? 0 : leadership.served.size + leadership.rounds.length + leadership.waiting.length;
      return (
        calls.size === 0 &&
        held === 0 &&
        completed.length === 0 &&
        transfers.length === 0 &&
        open === 0 &&
        incoming === undefined
      );
    });
  }

  /** BOUND: whoever watched is forgotten. */
  #unwatched(): boolean {
    return this.#world.members.every(({ replica, watched }) => {
      if (replica === undefined) return true;
      const { watchers, streams, principals, byPrefix, prefixLengths, due } = replica.context.watching;
      return (
        [watchers, streams, principals, byPrefix, prefixLengths, due].every(({ size }) => size === 0) && watched === 0
      );
    });
  }

  /** LEAK: no lease is left, nobody waits, and every domain and slot is open. */
  #empty(): boolean {
    return this.#world.members.every((member) => {
      const lease = member.replica?.context.lease;
      if (lease === undefined) return member.gone;
      const { leases, queues, coolDowns, slots } = lease;
      const closed = leases.size + queues.size + coolDowns.size;
      return member.gone || (closed === 0 && [...slots.values()].every(({ count }) => count === 0));
    });
  }
}
