/**
 * A command in a process group of its own, so that a signal reaches everything it started, and so that it can be seen
 * when all of that is gone. What leaves the group (a daemon that calls setsid) is out of reach.
 */
import { spawn } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';
import { setTimeout as pause } from 'node:timers/promises';

/** How a command ended. */
export type CommandEnd =
  | { readonly type: 'exited'; readonly code: number }
  | { readonly type: 'signalled'; readonly signal: NodeJS.Signals }
  /** It never ran: not found, not executable, and the like. */
  | { readonly type: 'notStarted'; readonly error: NodeJS.ErrnoException };

/** Between two looks for what a command left behind, in milliseconds; doubled from the first to the second. */
const FIRST_LOOK_MS = 20;
const MAX_LOOK_MS = 500;

/** See the head of the file. */
export class ProcessGroup {
  /** Resolves when the command itself has ended; others of its group may run on. Never rejects. */
  readonly ended: Promise<CommandEnd>;
  /** The id of the command and of its group; undefined when it was not started, or when the group is gone. */
  #id: number | undefined;

  /** Starts `command` (its name or path, then its arguments) with this process's standard streams. */
  constructor(command: readonly string[], environment: NodeJS.ProcessEnv) {
    const [file = '', ...rest] = command;
    const child = spawn(file, rest, { detached: true, stdio: 'inherit', env: environment });
    this.#id = child.pid;
    this.ended = new Promise((resolve) => {
      // Not only when it could not be started: `kill` reports here too, but we never use that one.
      child.once('error', (error) => {
        resolve({ type: 'notStarted', error });
      });
      child.once('exit', (code, signal) => {
        resolve(signal === null ? { type: 'exited', code: code ?? 0 } : { type: 'signalled', signal });
      });
    });
  }

  /** Sends `signal` to all of the group; nothing happens when it is gone. */
  signal(signal: NodeJS.Signals): void {
    if (this.#id === undefined) return;
    try {
      process.kill(-this.#id, signal);
    } catch (error) {
      // ESRCH: gone. EPERM: what is left of it runs as somebody else, and only that.
      if (!isErrno(error, 'ESRCH') && !isErrno(error, 'EPERM')) throw error;
    }
  }

  /** True when nothing of the group runs any more; from then on no signal is sent, for its id may be used again. */
  isGone(): boolean {
    if (this.#id !== undefined && !runs(this.#id)) this.#id = undefined;
    return this.#id === undefined;
  }

  /** Resolves once {@link isGone}. To be called after {@link ended}. */
  async untilGone(): Promise<void> {
    for (let ms = FIRST_LOOK_MS; !this.isGone(); ms = Math.min(2 * ms, MAX_LOOK_MS)) await pause(ms);
  }
}

/** Is there a process of this group that is not just waiting to be reaped? */
function runs(group: number): boolean {
  try {
    process.kill(-group, 0);
  } catch (error) {
    return !isErrno(error, 'ESRCH');
  }
  return process.platform !== 'linux' || !onlyZombies(group);
}

/**
 * In a container whose first process reaps nobody, the dead stay in their group for ever. Seeing no member at all means
 * that they cannot be seen (`hidepid`), not that there is none.
 */
function onlyZombies(group: number): boolean {
  const states = readdirSync('/proc').flatMap((name) => {
    if (!/^\d+$/.test(name)) return [];
    try {
      // "pid (name) state parent group …"; the name may have anything in it, brackets too.
      const text = readFileSync(`/proc/${name}/stat`, 'latin1');
      const [state = '', , of = ''] = text.slice(text.lastIndexOf(')') + 2).split(' ');
      return Number(of) === group ? [state] : [];
    } catch {
      // It ended since the directory was read.
      return [];
    }
  });
  return states.length > 0 && states.every((state) => state === 'Z' || state === 'X');
}

function isErrno(error: unknown, code: string): boolean {
  return error instanceof Error && (error as NodeJS.ErrnoException).code === code;
}
