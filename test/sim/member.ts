/**
 * One member's machine: its disk, its clocks, and the processes that live on it one after the other. A process does what
 * `node/node.ts` does: looks at its directory, forms or opens, then drives the production replica with the production
 * executor; here over simulated ports.
 */
import type { BootId, DirectoryId, Incarnation, NodeId } from '../../src/base/ids.js';
import { nextUint32 } from '../../src/base/random.js';
import { createExecutor } from '../../src/node/executor.js';
import type { Member } from '../../src/raft/types.js';
import { createForming } from '../../src/replica/forming.js';
import type { Store } from '../../src/replica/ports.js';
import { createReplica } from '../../src/replica/replica.js';
import type { Replica } from '../../src/replica/replica.js';
import type { Event, Genesis, MemberAddress, Time } from '../../src/replica/types.js';
import { commandCodec } from '../../src/wire/command.js';
import { between, chance, hexId } from './chance.js';
import { SimForming } from './forming-driver.js';
import type { FormingPorts } from './forming-driver.js';
import { CLUSTER } from './life.js';
import type { Ending, Life } from './life.js';
import { Listener } from './listener.js';
import type { Machine } from './machine.js';
import type { Ending as NetworkEnding, SimNetwork } from './network/network.js';
import type { Observer, Process } from './observation.js';
import type { Parameters } from './parameters.js';
import type { CrashHow, Disk, Server, Surroundings } from './ports.js';

/** What a member needs of its world. */
export interface MemberPorts extends Surroundings {
  readonly parameters: Parameters;
  readonly network: SimNetwork;
  readonly observer: Observer;
  readonly addresses: readonly MemberAddress[];
  /** A process starts: its number. */
  readonly nextRun: (starting: SimMember) => number;
  /** A member makes a new history. */
  readonly decided: (incarnation: Incarnation) => void;
  /** A process ended by itself. */
  readonly ended: (member: SimMember, ending: Ending) => void;
}

const DISK_LOOK_MS = 1_000;
const PLENTY_BYTES = 1_000_000;

/** See the head of the file. */
export class SimMember implements Server {
  readonly node: NodeId;
  readonly machine: Machine;
  readonly disk: Disk;
  /** Its disk was emptied: it may not come back as the same member. */
  wiped = false;
  /** A byte on its disk was changed: it may refuse to start. */
  flipped = false;
  /** It is not started any more. */
  gone = false;
  /** Bytes free on the disk, as the process sees them. */
  freeBytes = PLENTY_BYTES;
  readonly #ports: MemberPorts;
  #life: Life | undefined;
  #directory: DirectoryId | undefined;

  constructor(node: NodeId, machine: Machine, disk: Disk, ports: MemberPorts) {
    this.node = node;
    this.machine = machine;
    this.disk = disk;
    this.#ports = ports;
  }

  /** A process exists, whatever it is doing. */
  get up(): boolean {
    return this.#life !== undefined;
  }

  /** A process is up and its directory holds no member yet, nor has anybody been told that it does. */
  get isNew(): boolean {
    return this.#life?.forming !== undefined && this.#life.store === undefined;
  }

  get paused(): boolean {
    return this.#life?.paused ?? false;
  }

  get listening(): boolean {
    return this.#life?.running !== undefined;
  }

  /** How many streams of watches are open here. */
  get watched(): number {
    return this.#life?.running?.listener.watched ?? 0;
  }

  /** The replica that runs here, if one does. */
  get replica(): Replica | undefined {
    return this.#life?.running?.replica;
  }

  /** The process whose replica runs here, if one does. */
  get process(): Process | undefined {
    return this.#life?.running?.process;
  }

  /** The member that this machine is, once its directory has an identity. */
  get member(): Member | undefined {
    return this.#directory === undefined ? undefined : { node: this.node, directory: this.#directory };
  }

  /** Starts a process on what the disk holds. */
  start(): void {
    if (this.#life !== undefined) return;
    const life: Life = {
      boot: hexId(this.#ports.random) as BootId,
      run: this.#ports.nextRun(this),
      paused: false,
      held: [],
      forming: undefined,
      running: undefined,
      store: undefined,
    };
    this.#life = life;
    this.#ports.trace(`restart ${this.node}`);
    this.#open(life).catch((error: unknown) => {
      this.#failedToOpen(life, error);
    });
  }

  /** The process is gone at once. */
  kill(how: CrashHow): void {
    const life = this.#life;
    if (life === undefined) return;
    this.#ports.trace(`crash ${this.node}${how.lose === 'unsynced' ? ' lose' : ''} ${how.underWay}`);
    if (life.running === undefined) {
      this.#ports.coverage.count(this.isNew ? 'forming broken off' : 'crash while starting');
    }
    this.#bury(life, how.lose === 'unsynced' ? 'power' : 'closed');
    this.disk.crash(how);
  }

  /** As by SIGTERM: hands over, answers what it took, closes. */
  stop(): void {
    const life = this.#life;
    if (life?.running === undefined) return;
    this.#ports.trace(`stop ${this.node}`);
    this.dispatch({ type: 'stop' });
  }

  /** The process stands still; what arrives waits. */
  pause(): void {
    if (this.#life === undefined || this.#life.paused) return;
    this.#ports.trace(`pause ${this.node}`);
    this.#life.paused = true;
    this.#ports.network.pause(this.node, this.#life.boot);
  }

  /** It goes on: with what waited in the order of its arrival, or with its overdue timers before or after all that. */
  resume(): void {
    const life = this.#life;
    if (life?.paused !== true) return;
    this.#ports.trace(`resume ${this.node}`);
    life.paused = false;
    const held = life.held.splice(0);
    const timersFirst = chance(this.#ports.random, 500);
    const go = (timers: boolean): void => {
      for (const { task, timer } of held) if (timer === timers) this.#whenAwake(life, task, timer);
      if (!timers) this.#ports.network.resume(this.node, life.boot);
    };
    go(timersFirst);
    go(!timersFirst);
  }

  /** Queues an event for the replica that runs here. */
  dispatch(event: Event): void {
    const life = this.#life;
    if (life?.running === undefined) return;
    const { executor } = life.running;
    this.#whenAwake(life, () => {
      executor.dispatch(event);
    });
  }

  readonly call: Server['call'] = (...call) => this.#listener().call(...call);

  readonly watch: Server['watch'] = (...watch) => this.#listener().watch(...watch);

  #listener(): Listener {
    const running = this.#life?.running;
    if (running === undefined) throw new Error(`${this.node} does not listen`);
    return running.listener;
  }

  async #open(life: Life): Promise<void> {
    const found = await this.disk.inspect();
    if (this.#life !== life) return;
    if (found.type === 'member') life.store = await this.disk.open();
    const directory = found.type === 'member' ? found.directory : await this.disk.prepare();
    if (this.#life !== life) return;
    this.#directory = directory;
    const { parameters, random, network, addresses } = this.#ports;
    const forming = createForming({
      self: { node: this.node, directory },
      boot: life.boot,
      cluster: CLUSTER,
      members: addresses,
      form: true,
      floor: undefined,
      holdMs: parameters.holdMs,
      limits: parameters.limits,
      incarnation: hexId(random) as Incarnation,
      genesis: life.store?.loaded.genesis,
    });
    life.forming = new SimForming(forming, this.#formingPorts(life));
    network.listen(this.node, life.boot, life.forming);
    life.forming.tick();
  }

  #failedToOpen(life: Life, error: unknown): void {
    if (this.#life !== life) return;
    const wrong = error instanceof Error ? error : new Error(String(error));
    const disk = 'code' in wrong && (wrong.code === 'EIO' || wrong.code === 'ENOSPC');
    this.#endBy(
      life,
      disk ? { type: 'disk', error: wrong } : { type: 'refused', where: 'directory', message: wrong.message },
    );
  }

  #formingPorts(life: Life): FormingPorts {
    const { network, trace, decided } = this.#ports;
    return {
      node: this.node,
      disk: this.disk,
      network,
      trace,
      time: () => this.#time(),
      trueMs: (ms) => this.machine.trueMs(ms),
      alive: () => this.#life === life,
      whenAwake: (task) => {
        this.#whenAwake(life, task);
      },
      later: (ms, task) => {
        this.#later(life, ms, task);
      },
      decided,
      opened: (store) => {
        life.store = store;
      },
      formed: (genesis) => {
        this.#run(life, genesis);
      },
      refused: (message) => {
        this.#endBy(life, { type: 'refused', where: 'forming', message });
      },
      failed: (error) => {
        this.#failedToOpen(life, error);
      },
    };
  }

  #run(life: Life, genesis: Genesis): void {
    const { store } = life;
    const { parameters, network, observer, random, scheduler } = this.#ports;
    const { member } = this;
    if (store === undefined || member === undefined) throw new Error(`${this.node} runs before it has a directory`);
    const process: Process = { member, run: life.run, genesis };
    const options = {
      self: member,
      addresses: this.#ports.addresses,
      ...parameters.replica,
      limits: parameters.limits,
      seed: nextUint32(random),
    };
    const replica = createReplica(options, commandCodec, store.loaded);
    const watched: Replica = {
      context: replica.context,
      step: (time, events) => {
        const effects = replica.step(time, events);
        observer.stepped({ process, at: scheduler.now, time, events, effects, context: replica.context });
        return effects;
      },
    };
    const dispatch = (event: Event): void => {
      if (this.#life === life) this.dispatch(event);
    };
    const listener = new Listener(dispatch);
    const peers = network.attach({
      member,
      boot: life.boot,
      genesis,
      dispatch,
      openSnapshot: () => store.openSnapshot(),
    });
    const executor = createExecutor(watched, {
      store,
      time: () => this.#time(),
      schedule: (turn) => {
        const run = (): void => {
          this.#whenAwake(life, turn);
        };
        if (parameters.turnMs === 0) scheduler.soon(run);
        else scheduler.after(between(random, 0, parameters.turnMs), run);
      },
      peers,
      clients: listener,
      watchers: listener.watchers,
      observer: {
        log: () => undefined,
        serving: () => undefined,
        stopped: () => {
          this.#close(life, store);
        },
        failed: (cause, error) => {
          this.#endBy(life, { type: cause, error });
        },
      },
    });
    life.running = { executor, replica: watched, process, listener };
    observer.started(process, store.loaded, replica.context);
    this.#tick(life);
    this.#lookAtDisk(life);
  }

  #tick(life: Life): void {
    this.#later(life, this.#ports.parameters.replica.tickMs, () => {
      life.running?.executor.dispatch({ type: 'tick' });
      this.#tick(life);
    });
  }

  #lookAtDisk(life: Life): void {
    life.running?.executor.dispatch({ type: 'diskFree', bytes: this.freeBytes });
    this.#later(life, DISK_LOOK_MS, () => {
      this.#lookAtDisk(life);
    });
  }

  #close(life: Life, store: Store): void {
    store.close().then(
      () => {
        this.#endBy(life, { type: 'stopped' });
      },
      (error: unknown) => {
        this.#endBy(life, { type: 'disk', error: error instanceof Error ? error : new Error(String(error)) });
      },
    );
  }

  /** The process ends by its own decision. */
  #endBy(life: Life, ending: Ending): void {
    if (this.#life !== life) return;
    this.#ports.trace(`${this.node} ends: ${ending.type}${ending.type === 'refused' ? `: ${ending.message}` : ''}`);
    this.#bury(life, ending.type === 'stopped' ? 'stopped' : 'closed');
    if (ending.type !== 'stopped') this.disk.crash({ lose: 'none', underWay: 'lost' });
    this.#ports.ended(this, ending);
  }

  #bury(life: Life, how: NetworkEnding): void {
    const { network, observer } = this.#ports;
    this.#life = undefined;
    network.detach(this.node, life.boot, how);
    if (life.running !== undefined) {
      life.running.executor.halt();
      observer.ended(life.running.process);
      life.running.listener.end();
    }
  }

  /** Runs `task` in the process: now, or when it no longer stands still; never when it is gone. */
  #whenAwake(life: Life, task: () => void, timer = false): void {
    if (this.#life !== life) return;
    if (life.paused) life.held.push({ task, timer });
    else task();
  }

  #later(life: Life, ms: number, task: () => void): void {
    this.#ports.scheduler.after(this.machine.trueMs(ms), () => {
      this.#whenAwake(life, task, true);
    });
  }

  #time(): Time {
    return { nowMs: this.machine.monotonicMs, unixMs: Math.floor(this.machine.wallMs) };
  }
}
