/**
 * All clients of a run, the resource that they write to, and the judges of what they saw. The world hands every start,
 * step and end of a member's process to `observer`: without it nothing that happens to nobody's knowledge is judged.
 */
import type { Domain, Incarnation, NodeId } from '../../../src/base/ids.js';
import type { Random } from '../../../src/base/random.js';
import { createRandom, nextUint32 } from '../../../src/base/random.js';
import { between, chance, pick, skewed } from '../chance.js';
import { judge } from '../../support/history/judge.js';
import { historyOf } from '../judges/history.js';
import { Holds } from '../judges/holds.js';
import { Library } from '../judges/library.js';
import { Takeover } from '../judges/takeover.js';
import { Tokens } from '../judges/tokens.js';
import { Waits } from '../judges/waits.js';
import type { Watches } from '../judges/watches.js';
import { Machine } from '../machine.js';
import type { Observer, Report } from '../observation.js';
import { drawRate } from '../parameters.js';
import type { ClientParameters } from '../parameters.js';
import type { Server, Surroundings } from '../ports.js';
import { judgeWrites } from '../resource.js';
import type { Resource } from '../resource.js';
import { Attempts } from './attempts.js';
import type { Told } from './attempts.js';
import type { ClientPorts, SimClient } from './client-ports.js';
import { LimitsOperator } from './limits-operator.js';
import { ClientLinks } from './network.js';
import { ClientPaths } from './paths.js';
import { Probe } from './probe.js';
import { RawClient } from './raw.js';
import { Watcher } from './watcher.js';
import { Worker } from './worker.js';

/** The wall clock of a client machine at true time 0, before it is off by its own error. */
const START_UNIX_MS = Date.UTC(2026, 11, 2, 12);
/** How far a client's wall clock is off at most, and jumps at most, in milliseconds. */
const WALL_ERROR_MS = 60_000;

/** Clients rest for up to this at least, in milliseconds, times half their number. */
const LEAST_PAUSE_MS = 8;

/** One machine with its client. */
interface Place<C extends SimClient = SimClient> {
  readonly name: string;
  readonly machine: Machine;
  readonly links: ClientLinks;
  readonly client: C;
}

/** See the head of the file. */
export class Clients {
  /** Watches the members for the judges. */
  readonly observer: Observer;
  readonly #takeover: Takeover;
  readonly attempts: Attempts;
  readonly #surroundings: Surroundings;
  readonly #parameters: ClientParameters & { readonly codecs: boolean };
  readonly #servers: () => readonly Server[];
  readonly #resource: Resource;
  readonly #report: Report;
  readonly #holds: Holds;
  readonly #tokens: Tokens;
  readonly #waits: Waits;
  readonly #library: Library;
  readonly #paths: ClientPaths;
  readonly #domains: readonly Domain[];
  readonly #slots: ReadonlyMap<Domain, number>;
  readonly #places: readonly Place[];
  readonly #operator: RawClient | undefined;
  /** All but the watchers, which go on until everything that happens has happened. */
  readonly #callers: readonly Place[];
  readonly #watchers: readonly Place<Watcher>[];
  /** The histories of the run, the newest last. */
  readonly #incarnations: Incarnation[] = [];
  #looking = false;

  constructor(
    surroundings: Surroundings,
    parameters: ClientParameters & { readonly codecs: boolean },
    servers: () => readonly Server[],
    resource: Resource,
    report: Report,
    watches: Watches,
  ) {
    const { coverage, scheduler } = surroundings;
    this.#surroundings = surroundings;
    // The more clients, the more each of them rests: a run is about the members, too.
    const [least, most] = parameters.pauseMs;
    const rest = (parameters.workers + parameters.raws) / 2;
    this.#parameters = { ...parameters, pauseMs: [least, Math.max(most, LEAST_PAUSE_MS) * rest] };
    this.#servers = servers;
    this.#resource = resource;
    this.#report = report;
    this.#domains = Array.from({ length: parameters.domains }, (_, at) => `d${at + 1}` as Domain);
    const { slots } = parameters;
    this.#slots = new Map(this.#domains.map((domain, at) => [domain, slots[at % slots.length] ?? 1]));
    // Somebody may ask for one slot more than there should be.
    const places = this.#domains.flatMap((domain) => [domain, ...slotsOf(domain, 1 + (this.#slots.get(domain) ?? 1))]);
    this.#holds = new Holds(report, coverage, (at) => {
      scheduler.after(at - scheduler.now, () => {
        this.#look();
      });
    });
    this.#tokens = new Tokens(report, coverage);
    this.#waits = new Waits(report, coverage);
    this.#paths = new ClientPaths(coverage);
    this.#takeover = new Takeover(
      report,
      coverage,
      places,
      {
        granted: (incarnation, lease, at) => {
          this.#tokens.granted(incarnation, lease.domain, lease.token, lease.requestId, at);
          this.#waits.granted(incarnation, lease, at);
        },
      },
      () => scheduler.now,
    );
    this.observer = this.#takeover;
    const looks = {
      sent: (): void => undefined,
      told: (told: Told): void => {
        this.#lookAfter(told);
      },
    };
    this.#library = new Library(report, coverage, (client) => workerPlaces.some(({ name }) => name === client));
    this.attempts = new Attempts([this.#paths, this.#holds, this.#tokens, this.#waits, this.#library, looks]);
    resource.onWrite = ({ domain, token, incarnation, accepted, fence, at }) => {
      if (accepted || incarnation !== this.#incarnations.at(-1)) return;
      if (this.#holds.holds(incarnation, domain, token, at)) {
        this.#tokens.refused(incarnation, domain, token, fence, at);
      }
    };
    const { workers, raws } = parameters;
    const workerPlaces = Array.from({ length: workers }, (_, at) =>
      this.#place(`w${at + 1}`, (ports) => new Worker(ports)),
    );
    const rawPlaces = Array.from({ length: raws }, (_, at) =>
      this.#place(`r${at + 1}`, (ports) => new RawClient(ports)),
    );
    this.#watchers = Array.from({ length: parameters.watchers }, (_, at) =>
      this.#place(`o${at + 1}`, (ports) => new Watcher(ports, watches)),
    );
    // The last place: those before it are the same with and without it.
    const { limitsEveryMs } = parameters;
    const operators =
      limitsEveryMs === 0 ? [] : [this.#place('limits', (ports) => new LimitsOperator(ports, limitsEveryMs))];
    this.#callers = [...workerPlaces, ...rawPlaces, ...operators];
    this.#places = [...this.#callers, ...this.#watchers];
    this.#operator = rawPlaces[0]?.client;
  }

  /** Leases that a client was told to hold. */
  get grants(): number {
    return this.#paths.grants;
  }

  start(): void {
    for (const { client } of this.#places) client.start();
  }

  /** No new work: what workers hold is released, raw sessions fall silent. Ends all that keeps a client from running. */
  stop(): void {
    this.#calm();
    // What was kept is handled first.
    this.#surroundings.scheduler.after(10, () => {
      for (const { client } of this.#places) client.stop();
    });
  }

  /** A fresh client on a machine without faults acquires, renews and releases; `done` once it has. */
  probe(): { readonly done: boolean } {
    this.#calm();
    const probe = this.#place('probe', (ports) => new Probe(ports, 'probe' as Domain));
    probe.client.start();
    return probe.client;
  }

  /** A client's process stands still, and what arrives waits for it. */
  pause(random: Random, ms: number): void {
    const { client, machine } = pick(random, this.#places);
    this.#halt(client, machine, ms, 'stopped');
  }

  /** A client's machine sleeps: its monotonic clock stands. */
  suspend(random: Random, ms: number): void {
    const { client, machine } = pick(random, this.#places);
    this.#halt(client, machine, ms, 'asleep');
  }

  /** The wall clock of a client's machine jumps. */
  jumpWall(random: Random): void {
    const ms = skewed(random, 1, WALL_ERROR_MS) * (chance(random, 500) ? 1 : -1);
    this.#surroundings.coverage.count('client wall jump');
    pick(random, this.#places).machine.jumpWall(ms);
  }

  /** A client's machine is cut off from some of the nodes, or all. */
  cut(random: Random, ms: number): void {
    const { links } = pick(random, this.#places);
    const all = chance(random, 400);
    for (const { node } of this.#servers()) if (all || chance(random, 500)) links.cut(node);
    this.#surroundings.scheduler.after(ms, () => {
      links.heal();
    });
  }

  /** An operator hands leadership to `to`. */
  transferLeadership(to: NodeId): void {
    this.#operator?.operate({ type: 'transferLeadership', to });
  }

  /** Another history begins; `ahead`: its base is above everything that was issued before. */
  incarnationChanged(incarnation: Incarnation, ahead: boolean): void {
    this.#incarnations.push(incarnation);
    this.#tokens.begins(incarnation, ahead);
  }

  /** The first member has applied the end of a lease by time. */
  expired(domain: string, token: number, at: number): void {
    this.#look();
    this.#holds.expired(domain, token, at);
    const incarnation = this.#incarnations.at(-1);
    if (incarnation !== undefined) this.#waits.expired(incarnation, domain, token, at);
  }

  /** The run is over: looks at all of it. */
  finish(): void {
    for (const fault of judgeWrites(this.#resource.written)) this.#report(fault);
    for (const { name, client } of this.#places) {
      if (client.leaked > 0)
        this.#report({ code: 'LEAK', text: `${name} left ${client.leaked} timers and streams behind` });
    }
    for (const what of this.#unfinished(this.#places)) this.#report({ code: 'LEAK', text: what });
    this.#library.finish();
    for (const incarnation of this.#incarnations) this.#judgeHistory(incarnation);
  }

  /** True once every client but the watchers has closed and no call is open. Only after {@link stop}. */
  get idle(): boolean {
    return this.#unfinished(this.#callers).length === 0;
  }

  /** True once every watcher was told everything that was applied. Only after {@link stop}. */
  get watchersKnowAll(): boolean {
    return this.#watchers.every(({ client }) => client.knowsAll);
  }

  /** The watchers close their clients. Only after {@link stop}, and once. */
  endWatchers(): void {
    for (const { client } of this.#watchers) client.end();
  }

  /** True once every watcher has closed. Only after {@link endWatchers}. */
  get watchersIdle(): boolean {
    return this.#watchers.every(({ client }) => client.idle);
  }

  #unfinished(places: readonly Place[]): string[] {
    const closing = places.filter(({ client }) => !client.idle).map(({ name }) => `${name} has not closed`);
    return this.attempts.open > 0 ? [...closing, `${this.attempts.open} calls are still open`] : closing;
  }

  #judgeHistory(incarnation: Incarnation): void {
    const grants = this.#takeover.grantsOf(incarnation);
    const history = historyOf(incarnation, this.attempts.all, grants);
    const granted = grants && new Map([...grants].map(([requestId, { token }]) => [requestId, token]));
    this.#surroundings.coverage.count(granted === undefined ? 'history judged without its log' : 'history judged');
    const verdict = judge(history, granted === undefined ? undefined : { granted });
    switch (verdict.type) {
      case 'holds':
        return;
      case 'unknown':
        this.#report({ code: 'LINEAR', text: `the history of ${verdict.domain} could not be judged` });
        return;
      case 'violated':
        for (const fault of verdict.faults) {
          const [code = 'LINEAR', ...text] = fault.split(': ');
          this.#report({ code, text: text.join(': ') });
        }
    }
  }

  #place<C extends SimClient>(name: string, make: (ports: ClientPorts) => C): Place<C> {
    const { scheduler, random, coverage, trace } = this.#surroundings;
    // A stream for each machine.
    const own = createRandom(nextUint32(random));
    const surroundings = { scheduler, random: own, coverage, trace };
    const machine = new Machine(
      scheduler,
      drawRate(own),
      between(own, 0, 1e6),
      START_UNIX_MS + between(own, -WALL_ERROR_MS, WALL_ERROR_MS),
    );
    const links = new ClientLinks(surroundings, this.#parameters);
    const client: C = make({
      name,
      surroundings,
      machine,
      links,
      parameters: this.#parameters,
      codecs: this.#parameters.codecs,
      domains: this.#domains,
      slotsOf: (domain) => this.#slots.get(domain) ?? 1,
      servers: this.#servers,
      attempts: this.attempts,
      report: this.#report,
      writes: (write) => {
        this.#resource.write(write, scheduler.now);
      },
      look: () => {
        this.#look();
      },
      sleep: (ms, wallBackMs) => {
        this.#halt(client, machine, ms, 'asleep', wallBackMs);
      },
    });
    return { name, machine, links, client };
  }

  #halt(client: SimClient, machine: Machine, ms: number, why: 'stopped' | 'asleep', wallBackMs = 0): void {
    const { coverage, scheduler } = this.#surroundings;
    coverage.count(why === 'asleep' ? 'client suspend' : 'client pause');
    client.halt(why);
    if (why === 'asleep') machine.sleep();
    if (wallBackMs > 0) {
      coverage.count('wall clock set back while asleep');
      machine.jumpWall(-wallBackMs);
    }
    scheduler.after(ms, () => {
      this.#wake(client, machine, why);
    });
  }

  #wake(client: SimClient, machine: Machine, why: 'stopped' | 'asleep'): void {
    if (why === 'asleep') machine.wake();
    client.goOn(why);
    // The first thing that its code does may be to look at its leases.
    this.#look();
  }

  /** Nothing keeps a client from running or from its nodes any more. */
  #calm(): void {
    for (const { client, machine, links } of this.#places) {
      links.heal();
      this.#wake(client, machine, 'stopped');
      this.#wake(client, machine, 'asleep');
    }
  }

  /** When somebody is granted a domain, everybody is asked. */
  #lookAfter({ reply }: Told): void {
    if (reply.type !== 'answer' || reply.answer.type !== 'acquire') return;
    if (reply.answer.outcome.type === 'granted') this.#look();
  }

  #look(): void {
    // To look at a handle may make its client do something that is looked at in turn.
    if (this.#looking) return;
    this.#looking = true;
    for (const { client } of this.#places) {
      for (const claim of client.claims()) this.#holds.claimed(claim);
    }
    this.#looking = false;
  }
}

function slotsOf(name: Domain, slots: number): Domain[] {
  return Array.from({ length: slots }, (_, at) => `${name}#${at}` as Domain);
}
