/** A holder in a process of its own (`holder-child.ts`), which a test stops, blocks or kills; and the resource it writes to. */
import { mkdir, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { Program } from './chaos/children.js';
import type { ResourceOrder } from './chaos/orders.js';
import { freePorts } from './cluster.js';
import { bundle, TalkingChild } from './talking-child.js';

const ROOT = resolve(import.meta.dirname, '../..');

/** What the holder is started with. */
export interface HolderOrder {
  readonly package: string;
  readonly endpoints: readonly string[];
  readonly domain: string;
  readonly ttlMs: number;
  readonly waitMs: number;
  readonly coolDownMs: number;
  /** URL of the resource; '' for none. */
  readonly resource: string;
}

/** What the resource made of a write. */
export type Written = 'applied' | 'stale' | 'rejected' | 'none';

/** What the holder says. */
export type HolderNews =
  | { readonly type: 'asking' }
  /** It has the lease, and has opened its tenure at the resource. */
  | { readonly type: 'held'; readonly token: string; readonly written: Written }
  /** Its loop stood still for more than the TTL; this is what its first look at the handle said, and a write after it. */
  | {
      readonly type: 'woken';
      readonly stoodStillMs: number;
      readonly held: boolean;
      readonly state: string;
      readonly aborted: boolean;
      readonly written: Written;
    }
  /** Its clocks as it sees them, and its handle. */
  | { readonly type: 'looked'; readonly wallMs: number; readonly state: string; readonly aborted: boolean };

/** What the holder is told. */
export type HolderTask =
  /** Keep the loop busy for at least so long, and until this file exists. */
  | { readonly type: 'block'; readonly ms: number; readonly until: string }
  /** Say how things look. */
  | { readonly type: 'look' };

/** One holder. */
export type HolderProcess = TalkingChild<HolderNews, HolderTask>;

/** Programs, bundled so that Node runs them as they stand, a resource, and a folder. Use with `await using`. */
export class HolderStage implements AsyncDisposable {
  readonly home: string;
  readonly resource: string;
  readonly #programs: string;
  readonly #resource: Program;
  readonly #holders: HolderProcess[] = [];

  private constructor(home: string, programs: string, port: number) {
    this.home = home;
    this.#programs = programs;
    this.resource = `http://127.0.0.1:${port}`;
    const file = join(home, 'applied.jsonl');
    const order: ResourceOrder = { port, directory: join(home, 'resource'), notebook: file, package: ROOT };
    this.#resource = new Program('resource', join(programs, 'resource.mjs'), () => order, join(home, 'resource.log'));
  }

  static async create(): Promise<HolderStage> {
    const home = await mkdtemp(join(tmpdir(), 'fencepost-holder-'));
    const programs = await bundle('holder', 'holder-child.ts', 'chaos/resource.ts');
    const [port = 0] = await freePorts(1);
    const stage = new HolderStage(home, programs, port);
    await mkdir(join(home, 'resource'));
    await stage.#resource.start();
    return stage;
  }

  /** Starts a holder; it asks for its lease at once. */
  start(
    order: Pick<HolderOrder, 'endpoints' | 'domain'> & Partial<HolderOrder>,
    environment: Readonly<Record<string, string>> = {},
  ): HolderProcess {
    const whole = { package: ROOT, ttlMs: 3_000, waitMs: 0, coolDownMs: 0, resource: this.resource, ...order };
    const holder: HolderProcess = new TalkingChild(join(this.#programs, 'holder-child.mjs'), whole, environment);
    this.#holders.push(holder);
    return holder;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all([...this.#holders.map((holder) => holder.kill()), this.#resource.kill()]);
    await rm(this.home, { recursive: true, force: true });
    await rm(this.#programs, { recursive: true, force: true });
  }
}
