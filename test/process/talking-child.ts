/** Programs of this folder in processes of their own, which talk with their test. */
import { fork } from 'node:child_process';
import type { ChildProcess } from 'node:child_process';
import { join, resolve } from 'node:path';
import { build } from 'vite';
import { until } from './cluster.js';

const ROOT = resolve(import.meta.dirname, '../..');

/**
 * Bundles programs, named relative to this folder, so that Node runs them as they stand; the folder with one `.mjs` for
 * each, to be deleted in the end. `name` tells those of several tests apart.
 */
export async function bundle(name: string, ...programs: string[]): Promise<string> {
  // Two folders below the root, as `src` and `dist` files are: the proto files are found from there.
  const folder = join(ROOT, `node_modules/.fencepost-${name}-${process.pid}`);
  await build({
    root: ROOT,
    configFile: false,
    logLevel: 'error',
    build: {
      ssr: true,
      outDir: folder,
      target: 'node20',
      rolldownOptions: {
        input: programs.map((program) => join(import.meta.dirname, program)),
        output: { entryFileNames: '[name].mjs', chunkFileNames: '[name]-[hash].mjs' },
      },
    },
  });
  return folder;
}

/** A process that says what it does, is told what to do, and is stopped, woken and killed. */
export class TalkingChild<News extends { readonly type: string }, Task extends object> {
  readonly #child: ChildProcess;
  readonly #news: News[] = [];
  readonly #exited: Promise<unknown>;

  /** `order` is JSON in its first argument. */
  constructor(program: string, order: object, environment: Readonly<Record<string, string>> = {}) {
    this.#child = fork(program, [JSON.stringify(order)], {
      stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
      // Not what the test runner was started with.
      execArgv: [],
      env: { ...process.env, ...environment },
    });
    this.#child.on('message', (news) => {
      this.#news.push(news as News);
    });
    this.#exited = new Promise((done) => this.#child.once('exit', done));
  }

  /** Waits for the next news of this kind, and takes them. */
  async next<T extends News['type']>(type: T): Promise<Extract<News, { readonly type: T }>> {
    await until(`the process to say "${type}"`, () => this.#news.some((news) => news.type === type));
    const at = this.#news.findIndex((news) => news.type === type);
    const [news] = this.#news.splice(at, 1);
    return news as Extract<News, { readonly type: T }>;
  }

  tell(task: Task): void {
    this.#child.send(task);
  }

  signal(signal: 'SIGSTOP' | 'SIGCONT'): void {
    this.#child.kill(signal);
  }

  async kill(): Promise<void> {
    this.#child.kill('SIGKILL');
    await this.#exited;
  }
}
