/** Everything that runs in a chaos run, and where its traces are. */
import { cp, mkdir, mkdtemp, rm } from 'node:fs/promises';
import { appendFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createRandom, nextUint32 } from '../../../src/base/random.js';
import { freePorts, ProcessCluster } from '../cluster.js';
import { Program } from './children.js';
import { now } from './clock.js';
import type { Applied, ClientEvent } from './events.js';
import { Mesh } from './mesh.js';
import { Nodes } from './nodes.js';
import type { ResourceOrder, WorkerOrder } from './orders.js';
import { SmallDisk } from './small-disk.js';
import { Tail } from './tail.js';

const WORKERS = 4;
const HOLDERS = 3;
const CALLERS = 3;

/** What a run is started with. */
export interface StageSettings {
  readonly seed: number;
  readonly nodes: number;
  /** The package that runs: its root. */
  readonly package: string;
  /** The bundled programs. */
  readonly programs: { readonly worker: string; readonly resource: string };
}

/** See the head of the file. */
export class Stage {
  readonly home: string;
  readonly nodes: Nodes;
  readonly mesh: Mesh;
  readonly workers: readonly Program[];
  readonly resource: Program;
  readonly tail: Tail<ClientEvent | Applied>;
  /** The disk of the last node; a text says why it has none of its own. */
  readonly disk: SmallDisk | string;
  readonly #startedAt = now();
  readonly #endNow: () => void;

  private constructor(parts: Pick<Stage, 'home' | 'nodes' | 'mesh' | 'workers' | 'resource' | 'tail' | 'disk'>) {
    this.home = parts.home;
    this.nodes = parts.nodes;
    this.mesh = parts.mesh;
    this.workers = parts.workers;
    this.resource = parts.resource;
    this.tail = parts.tail;
    this.disk = parts.disk;
    // Whatever becomes of this process, no other outlives it.
    this.#endNow = (): void => {
      for (const { child } of this.nodes.all) child?.kill('SIGKILL');
      for (const program of [...this.workers, this.resource]) program.endNow();
      if (typeof this.disk !== 'string') this.disk.unmount();
    };
    process.once('exit', this.#endNow);
  }

  /** Makes everything; nothing runs yet. */
  static async create(settings: StageSettings): Promise<Stage> {
    const home = await mkdtemp(join(tmpdir(), `fencepost-chaos-${settings.seed}-`));
    const cluster = await ProcessCluster.create({ nodes: settings.nodes, package: settings.package });
    const nodes = new Nodes(cluster, home);
    const names = Array.from({ length: WORKERS }, (_, at) => `w${at + 1}`);
    const mesh = await Mesh.between(cluster.nodes, names);
    await nodes.configure(mesh);
    const last = cluster.nodes.at(-1);
    if (last === undefined) throw new Error('a node expected');
    const tail = new Tail<ClientEvent | Applied>(home);
    const [port = 0] = await freePorts(1);
    const random = createRandom(settings.seed);
    const workers: Program[] = [];
    for (const name of names) {
      const order = {
        name,
        endpoints: cluster.nodes.map((node) => mesh.address(name, node.name)),
        resource: `http://127.0.0.1:${port}`,
        package: settings.package,
        holders: HOLDERS,
        callers: CALLERS,
      };
      let starts = 0;
      const again = (): WorkerOrder => ({
        ...order,
        name: `${name}.${++starts}`,
        seed: nextUint32(random),
        notebook: tail.open(name),
      });
      workers.push(new Program(name, settings.programs.worker, again, join(home, `${name}.log`)));
    }
    const store = join(home, 'resource');
    await mkdir(store);
    const again = (): ResourceOrder => ({
      port,
      directory: store,
      notebook: tail.open('resource'),
      package: settings.package,
    });
    const resource = new Program('resource', settings.programs.resource, again, join(home, 'resource.log'));
    return new Stage({ home, nodes, mesh, workers, resource, tail, disk: SmallDisk.mount(last.dataDir) });
  }

  /** Starts all processes and waits for a leader. */
  async start(): Promise<void> {
    for (const node of this.nodes.all) this.nodes.start(node);
    await this.nodes.cluster.untilLeader();
    await Promise.all([...this.workers, this.resource].map((program) => program.start()));
  }

  /** A line in the story of the run. */
  tell(text: string): void {
    appendFileSync(join(this.home, 'story.log'), `${((now() - this.#startedAt) / 1_000).toFixed(3)} s  ${text}\n`);
  }

  /** What happened without leave so far. */
  violations(): string[] {
    return [...this.nodes.violations, ...[...this.workers, this.resource].flatMap((program) => program.violations)];
  }

  /** Ends every process. The traces are kept when `keep`. */
  async close(keep: boolean): Promise<void> {
    await Promise.all([...this.workers, this.resource].map((program) => program.kill()));
    await this.nodes.kill(this.nodes.all);
    await this.mesh.close();
    this.tail.close();
    process.off('exit', this.#endNow);
    if (keep) {
      for (const { name, dataDir } of this.nodes.all) {
        await cp(dataDir, join(this.home, `${name}.data`), { recursive: true }).catch(() => undefined);
      }
    }
    if (typeof this.disk !== 'string') this.disk.unmount();
    await this.nodes.cluster[Symbol.asyncDispose]();
    if (!keep) await rm(this.home, { recursive: true, force: true });
  }
}
