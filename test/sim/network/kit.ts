/** A simulated network with processes that only write down what they are told. */
import type { BootId, DirectoryId, Incarnation, NodeId } from '../../../src/base/ids.js';
import { STATE_LIMITS } from '../../../src/base/limits.js';
import { createRandom } from '../../../src/base/random.js';
import type { Revision } from '../../../src/base/revision.js';
import type { Heartbeat, Member, Message } from '../../../src/raft/types.js';
import type { PeerPort, SnapshotReader } from '../../../src/replica/ports.js';
import type { Event, Genesis } from '../../../src/replica/types.js';
import { Coverage } from '../coverage.js';
import type { Endpoint, Surroundings } from '../ports.js';
import { Scheduler } from '../scheduler.js';
import { SimNetwork } from './network.js';
import type { NetworkParameters } from './parameters.js';

/** Nothing goes wrong, and everything is encoded. */
export const QUIET: NetworkParameters = {
  latencyMs: [1, 2],
  spikeChance: 0,
  loss: 0,
  duplicate: 0,
  replay: 0,
  chunkTwice: 0,
  reorder: false,
  keepAliveMs: 4_000,
  chunkBytes: 10,
  room: 1_000,
  codecs: true,
};

const hex = (n: number): string => n.toString(16).padStart(32, '0');

/** The member called `name`; `directory` tells several of one name apart. */
export const member = (name: string, directory = 1): Member => ({
  node: name as NodeId,
  directory: hex(directory) as DirectoryId,
});

/** The history of these members. */
export function genesisOf(names: readonly string[]): Genesis {
  return {
    incarnation: 'a'.repeat(32) as Incarnation,
    cluster: 'test',
    history: { base: 1_796_000_000_000_000 as Revision, start: 0 },
    startTerm: 0,
    holdMs: 0,
    limits: { ...STATE_LIMITS, finishedRequests: 10 },
    members: names.map((name) => member(name)),
    stateDigest: '',
  };
}

type Of<T extends Event['type']> = Extract<Event, { readonly type: T }>;

/** One process and everything that it was told. */
export class TestProcess implements Endpoint {
  readonly member: Member;
  readonly boot: BootId;
  readonly genesis: Genesis;
  readonly events: Event[] = [];
  readonly peers: PeerPort;
  readonly #world: TestWorld;
  onEvent: (event: Event) => void = () => undefined;
  snapshot: () => SnapshotReader = () => {
    throw new Error('has no snapshot');
  };

  constructor(world: TestWorld, self: Member, boot: number, genesis: Genesis) {
    this.#world = world;
    this.member = self;
    this.boot = hex(boot) as BootId;
    this.genesis = genesis;
    this.peers = world.network.attach(this);
  }

  dispatch(event: Event): void {
    this.events.push(event);
    this.#world.told.push(`${this.#world.scheduler.now.toFixed(6)} ${this.member.node} ${event.type}`);
    this.onEvent(event);
  }

  openSnapshot(): SnapshotReader {
    return this.snapshot();
  }

  all<T extends Event['type']>(type: T): Of<T>[] {
    return this.events.filter((event): event is Of<T> => event.type === type);
  }

  count(type: Event['type']): number {
    return this.all(type).length;
  }

  get messages(): Message[] {
    return this.all('message').map(({ message }) => message);
  }

  heartbeat(to: Member, round: number): Heartbeat {
    return { type: 'heartbeat', from: this.member, to, term: 1, commit: 0, round };
  }

  beat(to: TestProcess, round: number): void {
    this.peers.perform({ type: 'send', message: this.heartbeat(to.member, round) });
  }

  /** What it was told since there were `from` events, without messages, as types. */
  typesSince(from: number): string[] {
    return this.events
      .slice(from)
      .map(({ type }) => type)
      .filter((type) => type !== 'message');
  }
}

/** A scheduler, a network and processes. */
export class TestWorld {
  readonly scheduler = new Scheduler();
  readonly coverage = new Coverage();
  readonly lines: string[] = [];
  /** Time, process and type of every event. */
  readonly told: string[] = [];
  readonly surroundings: Surroundings;
  readonly network: SimNetwork;
  readonly genesis: Genesis;
  #boots = 100;

  constructor(names: readonly string[], parameters: Partial<NetworkParameters> = {}, seed = 1) {
    this.genesis = genesisOf(names);
    this.surroundings = {
      scheduler: this.scheduler,
      random: createRandom(seed),
      coverage: this.coverage,
      trace: (line) => this.lines.push(line),
    };
    this.network = new SimNetwork(this.surroundings, { ...QUIET, ...parameters });
  }

  /** Starts a process of a member. */
  start(name: string, directory = 1, genesis = this.genesis): TestProcess {
    return new TestProcess(this, member(name, directory), ++this.#boots, genesis);
  }

  /** Runs for so many milliseconds of true time, and lets promises settle between any two tasks. */
  async run(ms: number): Promise<void> {
    const end = this.scheduler.now + ms;
    while (this.scheduler.runNext(end)) await new Promise(setImmediate);
    await new Promise(setImmediate);
  }

  /** Processes of these members that have all their lanes open. */
  async cluster(...names: string[]): Promise<TestProcess[]> {
    const processes = names.map((name) => this.start(name));
    await this.run(500);
    return processes;
  }
}
