/** Processes of a chaos run that are not nodes: clients, and the resource. */
import { fork } from 'node:child_process';
import type { ChildProcess } from 'node:child_process';
import { openSync } from 'node:fs';

/** A program of this folder that runs in a process of its own; it says `ready` when it is. */
export class Program {
  /** Told how it ended when nobody had killed it or told it to end. */
  readonly violations: string[] = [];
  readonly name: string;
  readonly #file: string;
  readonly #order: () => object;
  readonly #log: string;
  #child: ChildProcess | undefined;
  #exited: Promise<unknown> = Promise.resolve();
  #mayEnd = false;

  /** `file` is its code; `order` makes its argument at each start. What it says on standard error goes to `log`. */
  constructor(name: string, file: string, order: () => object, log: string) {
    this.name = name;
    this.#file = file;
    this.#order = order;
    this.#log = log;
  }

  get running(): boolean {
    return this.#child !== undefined;
  }

  async start(): Promise<void> {
    const log = openSync(this.#log, 'a');
    const child = fork(this.#file, [JSON.stringify(this.#order())], { stdio: ['ignore', log, log, 'ipc'] });
    this.#child = child;
    this.#mayEnd = false;
    this.#exited = new Promise((done) => {
      child.once('exit', (code, signal) => {
        if (this.#child === child) this.#child = undefined;
        if (!this.#mayEnd)
          this.violations.push(`${this.name} ended by itself with ${code ?? signal ?? 'nothing'}: see ${this.#log}`);
        done(undefined);
      });
    });
    await Promise.race([new Promise((done) => child.once('message', done)), this.#exited]);
  }

  signal(signal: 'SIGSTOP' | 'SIGCONT'): void {
    this.#child?.kill(signal);
  }

  async kill(): Promise<void> {
    this.#mayEnd = true;
    this.#child?.kill('SIGKILL');
    await this.#exited;
  }

  /** SIGKILL, without waiting; for the very end. */
  endNow(): void {
    this.#child?.kill('SIGKILL');
  }

  /** Tells it to end what it does, and waits for `limitMs`; then it is killed, and that is noted. */
  async end(limitMs: number): Promise<void> {
    if (this.#child === undefined) return;
    this.#mayEnd = true;
    this.#child.send('end');
    let timer: ReturnType<typeof setTimeout> | undefined;
    const late = new Promise<'late'>((done) => {
      timer = setTimeout(done, limitMs, 'late');
    });
    const result = await Promise.race([this.#exited, late]);
    clearTimeout(timer);
    if (result !== 'late') return;
    this.violations.push(`${this.name} did not end within ${limitMs} ms`);
    await this.kill();
  }
}
