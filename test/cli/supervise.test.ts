/** A command under a lease: real processes, a lease whose time left and whose loss the test decides. */
import { execFileSync } from 'node:child_process';
import { chmodSync, existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { type Orders, type Outcome, supervise } from '../../src/cli/supervise.js';
import { LeaseLostError } from '../../src/client/errors.js';

let folder = '';
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'fencepost-supervise-'));
});
afterEach(() => {
  rmSync(folder, { recursive: true, force: true });
});

/** Says its process id in a file and does nothing until it is ended; TERM ends it unless `trap` says otherwise. */
const WAITS = 'echo $$ > "$DIR/pid"; while :; do sleep 0.02; done';

class Supervised {
  readonly said: string[] = [];
  readonly abort = new AbortController();
  leftMs: () => number = () => 1_000_000;
  send: (signal: NodeJS.Signals) => void = () => undefined;
  readonly outcome: Promise<Outcome>;
  ended = false;

  constructor(command: readonly string[], more: Partial<Orders> & { leftMs?: (self: Supervised) => number } = {}) {
    const { leftMs, ...orders } = more;
    if (leftMs !== undefined) this.leftMs = () => leftMs(this);
    this.outcome = supervise(
      { signal: this.abort.signal, leftMs: () => this.leftMs() },
      {
        command,
        environment: { ...process.env, DIR: folder },
        stopSignal: 'SIGTERM',
        killAfterMs: 1_000,
        say: (text) => this.said.push(text),
        forward: (send) => {
          this.send = send;
        },
        ...orders,
      },
    ).finally(() => {
      this.ended = true;
    });
  }

  /** The process id that the command wrote. */
  async pid(name = 'pid'): Promise<number> {
    const file = join(folder, name);
    while (!existsSync(file) || readFileSync(file, 'utf8') === '') await pause(5);
    return Number(readFileSync(file, 'utf8'));
  }

  lose(ended?: { reason: 'force_released'; by: string; note: string; currentToken: bigint }): void {
    this.abort.abort(new LeaseLostError('orders/eu', 41n, ended));
  }
}

function sh(script: string, more: ConstructorParameters<typeof Supervised>[1] = {}): Supervised {
  return new Supervised(['sh', '-c', script], more);
}

/** Runs, and is not only waiting for somebody to reap it. */
function isAlive(pid: number): boolean {
  try {
    return !execFileSync('ps', ['-o', 'stat=', '-p', String(pid)], { encoding: 'utf8' }).startsWith('Z');
  } catch {
    return false;
  }
}

describe('a command that ends by itself', () => {
  it.each([0, 3, 124, 255])('gives its exit code %i', async (code) => {
    const run = sh(`exit ${code}`);
    expect(await run.outcome).toEqual({ type: 'exited', code });
    expect(run.said).toEqual([]);
  });

  it('gives the signal that ended it', async () => {
    expect(await sh('kill -9 $$').outcome).toEqual({ type: 'signalled', signal: 'SIGKILL' });
  });

  it('sees its arguments and environment as they were given', async () => {
    const words = ['a b', '--json', '--', '', "it's"];
    const command = ['sh', '-c', 'printf "%s\\n" "$TOKEN" "$@" > "$DIR/words"', 'name', ...words];
    const environment = { ...process.env, DIR: folder, TOKEN: '41' };
    expect(await new Supervised(command, { environment }).outcome).toEqual({ type: 'exited', code: 0 });
    expect(readFileSync(join(folder, 'words'), 'utf8')).toBe(`41\n${words.join('\n')}\n`);
  });

  it('was lost all the same when its process stood still past the deadline and looked at no clock since', async () => {
    let looks = 0;
    const run = sh('exit 0', {
      leftMs: (self) => {
        if (looks++ > 0) self.lose();
        return 1_000_000;
      },
    });
    expect(await run.outcome).toEqual({ type: 'lost' });
  });
});

describe('a command that cannot be run', () => {
  it('was not found', async () => {
    const outcome = await new Supervised([join(folder, 'missing')]).outcome;
    expect(outcome).toMatchObject({ type: 'notStarted', error: { code: 'ENOENT' } });
  });

  it('is not executable', async () => {
    const file = join(folder, 'plain');
    writeFileSync(file, 'text');
    chmodSync(file, 0o644);
    expect(await new Supervised([file]).outcome).toMatchObject({ type: 'notStarted', error: { code: 'EACCES' } });
  });
});

describe('a lost lease', () => {
  it('sends the signal that was asked for, and says why', async () => {
    const run = sh(`trap 'exit 7' USR1; ${WAITS}`, { stopSignal: 'SIGUSR1', killAfterMs: 60_000 });
    await run.pid();
    run.lose({ reason: 'force_released', by: '10.0.0.7', note: 'stuck', currentToken: 0n });
    expect(await run.outcome).toEqual({ type: 'lost' });
    expect(run.said).toEqual([
      'The lease is lost: ended by an operator (10.0.0.7: stuck). The command gets SIGUSR1, and SIGKILL after 60000 ms.',
    ]);
  });

  it('kills what ignores the signal', async () => {
    const run = sh(`trap '' TERM; ${WAITS}`, { killAfterMs: 50 });
    const pid = await run.pid();
    run.lose();
    expect(await run.outcome).toEqual({ type: 'lost' });
    expect(isAlive(pid)).toBe(false);
  });

  it('ends what the command has started, though the command itself has ended', async () => {
    const inner = `trap "" TERM; echo $$ > "$DIR/inner"; while :; do sleep 0.02; done`;
    const run = sh(`sh -c '${inner}' & trap 'exit 0' TERM; ${WAITS}`, { killAfterMs: 50 });
    const pids = [await run.pid(), await run.pid('inner')];
    run.lose();
    expect(await run.outcome).toEqual({ type: 'lost' });
    expect(pids.map(isAlive)).toEqual([false, false]);
  });

  it('that was lost before the command began ends it at once', async () => {
    const abort = new AbortController();
    abort.abort(new LeaseLostError('orders/eu', 41n, undefined));
    const said: string[] = [];
    const outcome = await supervise(
      { signal: abort.signal, leftMs: () => 0 },
      {
        command: ['sleep', '1000'],
        environment: process.env,
        stopSignal: 'SIGTERM',
        killAfterMs: 0,
        say: (text) => said.push(text),
        forward: () => undefined,
      },
    );
    expect(outcome).toEqual({ type: 'lost' });
    expect(said).toEqual([
      'The lease is lost: no renewal was confirmed before its safe deadline. The command gets SIGTERM.',
    ]);
  });
});

describe('a lease that is not renewed', () => {
  it('stops the command so early that SIGKILL comes before the deadline', async () => {
    const run = sh(WAITS, { killAfterMs: 1_000 });
    await run.pid();
    run.leftMs = () => 1_000;
    expect(await run.outcome).toEqual({ type: 'lost' });
    expect(run.abort.signal.aborted).toBe(false);
    expect(run.said).toEqual([
      'The lease is nearly lost: no renewal was confirmed, and 1000 ms are left. The command gets SIGTERM, and SIGKILL after 1000 ms.',
    ]);
  });

  it('kills the command at the deadline, whatever it was given to stop', async () => {
    const run = sh(`trap '' TERM; ${WAITS}`, { killAfterMs: 1_000_000, leftMs: () => 2_000_000 });
    const pid = await run.pid();
    run.leftMs = () => 1_000_000;
    while (run.said.length === 0) await pause(5);
    expect(isAlive(pid)).toBe(true);
    run.lose();
    expect(await run.outcome).toEqual({ type: 'lost' });
  });
});

describe('signals and what is left behind', () => {
  it('reach everything that the command has started', async () => {
    const run = sh(`sh -c 'echo $$ > "$DIR/inner"; exec sleep 1000' & ${WAITS}`);
    await run.pid();
    const inner = await run.pid('inner');
    run.send('SIGTERM');
    expect(await run.outcome).toEqual({ type: 'signalled', signal: 'SIGTERM' });
    expect(isAlive(inner)).toBe(false);
  });

  it('do not end a command that handles them', async () => {
    const run = sh(`trap 'echo $$ > "$DIR/heard"' HUP; trap 'exit 9' INT; ${WAITS}`);
    await run.pid();
    run.send('SIGHUP');
    await run.pid('heard');
    expect(run.ended).toBe(false);
    run.send('SIGINT');
    expect(await run.outcome).toEqual({ type: 'exited', code: 9 });
  });

  it('keep the lease until the last process of the group is gone', async () => {
    const run = sh(`sh -c 'echo $$ > "$DIR/inner"; exec sleep 1000' & exit 5`);
    const inner = await run.pid('inner');
    while (run.said.length === 0) await pause(5);
    expect(run.said).toEqual([
      'The command has ended; the lease is kept until the processes that it left behind have, too.',
    ]);
    expect(run.ended).toBe(false);
    process.kill(inner, 'SIGTERM');
    expect(await run.outcome).toEqual({ type: 'exited', code: 5 });
  });

  it('do not wait for the dead that nobody reaps', async (context) => {
    if (process.platform !== 'linux') context.skip('only /proc tells the dead from the living');
    if (!hasPerl()) context.skip('no perl');
    // A child of the group that has ended, and whose parent, outside the group, never asks for it.
    const script = `use POSIX;
      pipe(my $r, my $w);
      exit 6 if fork() && <$r>;
      if (fork()) { POSIX::setsid(); open(F, '>', "$ENV{DIR}/parent"); print F $$; close F; print $w "x\\n"; close $w; sleep 1000 }`;
    const run = new Supervised(['perl', '-e', script]);
    const parent = await run.pid('parent');
    expect(await run.outcome).toEqual({ type: 'exited', code: 6 });
    expect(isAlive(parent)).toBe(true);
    process.kill(parent, 'SIGKILL');
  });
});

function hasPerl(): boolean {
  try {
    execFileSync('perl', ['-MPOSIX', '-e', '1']);
    return true;
  } catch {
    return false;
  }
}
