/** Real node processes of the built package, on free ports of 127.0.0.1, with data in a temporary folder. */
import { spawn } from 'node:child_process';
import type { ChildProcess } from 'node:child_process';
import { cp, mkdtemp, readFile, rm, symlink, writeFile } from 'node:fs/promises';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { Client, credentials, Metadata } from '@grpc/grpc-js';
import type { ServiceError } from '@grpc/grpc-js';
import type { Answer, Call, GetStatusAnswer, Header } from '../../src/base/api.js';
import { METHOD_OF } from '../../src/wire/public.js';
import { requestOf } from '../../src/wire/public-request.js';
import type { PublicResponse } from '../../src/wire/public-answer.js';

const ROOT = resolve(import.meta.dirname, '../..');
/** Only a broken run waits for so long, on the busiest machine, in milliseconds. */
const LIMIT_MS = 90_000;

/** One node of a {@link ProcessCluster}. */
export interface ProcessNode {
  readonly name: string;
  readonly clientAddress: string;
  readonly peerAddress: string;
  readonly dataDir: string;
  child: ChildProcess | undefined;
  /** Resolves with the exit code, or the signal that ended it. */
  exited: Promise<number | string>;
  /** What it wrote to standard error since its last start. */
  log: string;
}

/** What a test may set. */
export interface ProcessSettings {
  readonly nodes?: number;
  /** The package to run: a copy made by {@link patchedPackage}; the repository itself by default. */
  readonly package?: string;
  /** More fields of each node's configuration file. */
  readonly config?: Readonly<Record<string, unknown>>;
  /** More variables for one node's environment, by its name. */
  readonly environment?: Readonly<Record<string, Readonly<Record<string, string>>>>;
}

/** What a node answered. */
export interface Reply<T extends Call> {
  readonly header: Header | undefined;
  readonly answer: Extract<Answer, { type: T['type'] }>;
}

/** See the head of the file. Use with `await using`. */
export class ProcessCluster implements AsyncDisposable {
  readonly nodes: readonly ProcessNode[];
  readonly #home: string;
  readonly #settings: ProcessSettings;
  readonly #clients = new Map<string, Client>();

  private constructor(home: string, nodes: readonly ProcessNode[], settings: ProcessSettings) {
    this.#home = home;
    this.nodes = nodes;
    this.#settings = settings;
  }

  /** Makes the folders and files; nothing runs yet. */
  static async create(settings: ProcessSettings = {}): Promise<ProcessCluster> {
    const home = await mkdtemp(join(tmpdir(), 'fencepost-'));
    const count = settings.nodes ?? 3;
    const ports = await freePorts(2 * count);
    const nodes = Array.from({ length: count }, (_, at): ProcessNode => {
      const name = `n${at + 1}`;
      return {
        name,
        clientAddress: `127.0.0.1:${ports[2 * at] ?? 0}`,
        peerAddress: `127.0.0.1:${ports[2 * at + 1] ?? 0}`,
        dataDir: join(home, name),
        child: undefined,
        exited: Promise.resolve('never started'),
        log: '',
      };
    });
    const cluster = new ProcessCluster(home, nodes, settings);
    for (const node of nodes) await cluster.configure(node);
    return cluster;
  }

  /** Creates, starts and waits for a leader. */
  static async started(settings: ProcessSettings = {}): Promise<ProcessCluster> {
    const cluster = await ProcessCluster.create(settings);
    try {
      for (const node of cluster.nodes) cluster.start(node);
      await cluster.untilLeader();
      return cluster;
    } catch (error) {
      await cluster[Symbol.asyncDispose]();
      throw error;
    }
  }

  /** Writes a node's configuration file, with `more` on top. */
  async configure(node: ProcessNode, more: Readonly<Record<string, unknown>> = {}): Promise<void> {
    const { name, clientAddress, peerAddress, dataDir } = node;
    const members = this.nodes.map((each) => ({ nodeId: each.name, peerAddress: each.peerAddress }));
    const config = {
      cluster: 'test',
      nodeId: name,
      dataDir,
      clientAddress,
      peerAddress,
      members,
      form: true,
      diskFloorBytes: 0,
    };
    await writeFile(this.#configFile(node), JSON.stringify({ ...config, ...this.#settings.config, ...more }));
  }

  start(node: ProcessNode, ...flags: string[]): void {
    if (node.child !== undefined) throw new Error(`${node.name} runs already`);
    const main = join(this.#settings.package ?? ROOT, 'dist/cli/main.js');
    const child = spawn(process.execPath, [main, 'start', '--config', this.#configFile(node), ...flags], {
      stdio: ['ignore', 'ignore', 'pipe'],
      env: { ...process.env, ...this.#settings.environment?.[node.name] },
    });
    node.child = child;
    node.log = '';
    child.stderr.setEncoding('utf8').on('data', (text: string) => {
      node.log += text;
    });
    node.exited = new Promise((done) => {
      child.once('exit', (code, signal) => {
        if (node.child === child) node.child = undefined;
        done(code ?? signal ?? 'unknown');
      });
    });
  }

  /** Sends a signal; returns at once. */
  signal(node: ProcessNode, signal: NodeJS.Signals): void {
    node.child?.kill(signal);
  }

  /** Kills and waits until the process is gone. */
  async kill(...nodes: ProcessNode[]): Promise<void> {
    for (const node of nodes) this.signal(node, 'SIGKILL');
    await Promise.all(nodes.map((node) => node.exited));
  }

  /** Deletes a stopped node's disk. */
  async wipe(node: ProcessNode): Promise<void> {
    if (node.child !== undefined) throw new Error(`${node.name} runs`);
    await rm(node.dataDir, { recursive: true, force: true });
  }

  /** One call to one node by a stock gRPC client that retries nothing. */
  call<T extends Call>(node: ProcessNode, call: T, timeoutMs = 10_000): Promise<Reply<T>> {
    let client = this.#clients.get(node.name);
    if (client === undefined) {
      client = new Client(node.clientAddress, credentials.createInsecure(), {
        'grpc.enable_retries': 0,
        'grpc.enable_http_proxy': 0,
        'grpc.use_local_subchannel_pool': 1,
        'grpc.initial_reconnect_backoff_ms': 100,
        'grpc.max_reconnect_backoff_ms': 200,
      });
      this.#clients.set(node.name, client);
    }
    const { path, requestSerialize, responseDeserialize } = METHOD_OF[call.type];
    const open = client;
    return new Promise((done, fail) => {
      open.makeUnaryRequest(
        path,
        requestSerialize,
        responseDeserialize,
        requestOf(call),
        new Metadata({ waitForReady: true }),
        { deadline: Date.now() + timeoutMs },
        (error: ServiceError | null, response?: PublicResponse) => {
          if (error !== null || response === undefined) fail(error ?? new Error('no response'));
          // The method of a call answers with the answer of that call.
          else done({ header: response.header, answer: response.answer as Extract<Answer, { type: T['type'] }> });
        },
      );
    });
  }

  /** As {@link call}, with the same call again and again until it is answered: for calls that may be repeated. */
  async answered<T extends Call>(node: ProcessNode, call: T): Promise<Reply<T>> {
    let reply: Reply<T> | undefined;
    let last: unknown;
    const answers = async (): Promise<boolean> => {
      try {
        reply = await this.call(node, call, 30_000);
      } catch (error) {
        last = error;
      }
      return reply !== undefined;
    };
    await until(`${node.name} to answer ${call.type}`, answers, LIMIT_MS, () => `${String(last)}\n${this.logs()}`);
    if (reply === undefined) throw new Error('no answer');
    return reply;
  }

  async status(node: ProcessNode): Promise<GetStatusAnswer> {
    return (await this.call(node, { type: 'getStatus' }, 2_000)).answer;
  }

  /** The node that says it leads and that a majority follows. */
  async leader(): Promise<ProcessNode | undefined> {
    const running = this.nodes.filter((node) => node.child !== undefined);
    const seen = await Promise.all(running.map((node) => this.status(node).catch(() => undefined)));
    const terms = seen.flatMap((status) => (status?.role === 'leader' ? [status.term] : []));
    const newest = seen.find((status) => status?.role === 'leader' && status.term === Math.max(...terms));
    const followers = seen.filter((status) => status?.leader === newest?.node).length;
    if (newest === undefined || followers * 2 <= this.nodes.length) return undefined;
    return running.find((node) => node.name === newest.node);
  }

  async untilLeader(limitMs = LIMIT_MS): Promise<ProcessNode> {
    let found: ProcessNode | undefined;
    await until(
      'a leader',
      async () => (found = await this.leader()) !== undefined,
      limitMs,
      () => this.logs(),
    );
    if (found === undefined) throw new Error('no leader');
    return found;
  }

  /** Waits until every node runs, has a state, and knows the leader: so that it takes any call. */
  async untilAllServe(): Promise<void> {
    const leader = await this.untilLeader();
    await until(
      'every node to know the leader',
      async () => {
        const seen = await Promise.all(this.nodes.map((node) => this.status(node).catch(() => undefined)));
        return seen.every((status) => status?.leader === leader.name);
      },
      LIMIT_MS,
      () => this.logs(),
    );
  }

  /** Nodes other than `node`. */
  others(node: ProcessNode): ProcessNode[] {
    return this.nodes.filter((each) => each !== node);
  }

  /** The end of every node's log, for a failing test. */
  logs(): string {
    return this.nodes.map(({ name, log }) => `--- ${name}\n${log.slice(-2_000)}`).join('\n');
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const client of this.#clients.values()) client.close();
    await this.kill(...this.nodes);
    await rm(this.#home, { recursive: true, force: true });
  }

  #configFile(node: ProcessNode): string {
    return join(this.#home, `${node.name}.json`);
  }
}

/** Waits for a condition; throws with what was waited for and `more()`. */
export async function until(
  what: string,
  condition: () => boolean | Promise<boolean>,
  limitMs = LIMIT_MS,
  more: () => string = () => '',
): Promise<void> {
  const end = Date.now() + limitMs;
  while (!(await condition())) {
    if (Date.now() > end) throw new Error(`not within ${limitMs} ms: ${what}\n${more()}`);
    await sleep(20);
  }
}

/** A source text to replace in a built file; must be there exactly once. */
export interface Patch {
  /** Below `dist`. */
  readonly file: string;
  readonly text: string;
  readonly replacement: string;
}

/** A copy of the built package with one rule removed, to show that a check notices. */
export async function patchedPackage(...patches: Patch[]): Promise<{ readonly path: string } & AsyncDisposable> {
  const path = await mkdtemp(join(tmpdir(), 'fencepost-patched-'));
  await cp(join(ROOT, 'dist'), join(path, 'dist'), { recursive: true });
  for (const name of ['node_modules', 'proto', 'package.json']) await symlink(join(ROOT, name), join(path, name));
  for (const { file, text, replacement } of patches) {
    const target = join(path, 'dist', file);
    const source = await readFile(target, 'utf8');
    const parts = source.split(text);
    if (parts.length !== 2) throw new Error(`${file} has ${parts.length - 1} times: ${text}`);
    await writeFile(target, parts.join(replacement));
  }
  return { path, [Symbol.asyncDispose]: () => rm(path, { recursive: true, force: true }) };
}

/** Ports that nobody listens on now. */
export async function freePorts(count: number): Promise<number[]> {
  const servers = await Promise.all(
    Array.from(
      { length: count },
      () =>
        new Promise<ReturnType<typeof createServer>>((done, fail) => {
          const server = createServer();
          server.once('error', fail);
          server.listen(0, '127.0.0.1', () => {
            done(server);
          });
        }),
    ),
  );
  const ports = servers.map((server) => {
    const address = server.address();
    if (address === null || typeof address === 'string') throw new Error('a listening server has a port');
    return address.port;
  });
  await Promise.all(servers.map((server) => new Promise((done) => server.close(done))));
  return ports;
}
