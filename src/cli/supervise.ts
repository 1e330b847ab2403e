/**
 * Runs a command under a lease: tells it to stop when the lease is lost or about to be, kills it when it does not, and
 * waits until nothing of it runs. The signal goes out `killAfterMs` before the lease's safe deadline, so that SIGKILL
 * comes no later than that deadline: nobody else can be granted the domain while the command still runs, unless this
 * process stood still or an operator ended the lease.
 */
import type { Lease } from '../client/lease.js';
import { LeaseLostError } from '../client/errors.js';
import { type CommandEnd, ProcessGroup } from './process-group.js';
import { REASONS } from './views.js';

/** What to run and how to stop it. */
export interface Orders {
  /** Its name or path, then its arguments. */
  readonly command: readonly string[];
  readonly environment: NodeJS.ProcessEnv;
  /** What the command gets on a loss. */
  readonly stopSignal: NodeJS.Signals;
  /** From that signal to SIGKILL, in milliseconds. */
  readonly killAfterMs: number;
  /** Shows a line to the user. */
  readonly say: (text: string) => void;
  /** Is given what passes a signal on to the command, before the command runs. */
  readonly forward: (send: (signal: NodeJS.Signals) => void) => void;
}

/** How it came out. */
export type Outcome =
  | CommandEnd
  /** The lease was lost, or about to be, before all of the command had ended. */
  | { readonly type: 'lost' };

/** The clocks are looked at least this often, in milliseconds. */
const MAX_LOOK_MS = 1_000;

/** Resolves when the command, and all that is left of its process group, is gone. */
export async function supervise(lease: Pick<Lease, 'signal' | 'leftMs'>, orders: Orders): Promise<Outcome> {
  const { command, environment, stopSignal, killAfterMs, say, forward } = orders;
  const group = new ProcessGroup(command, environment);
  forward((signal) => {
    group.signal(signal);
  });
  let stopped = false;
  const isStopped = (): boolean => stopped;
  let look: NodeJS.Timeout | undefined;
  let kill: NodeJS.Timeout | undefined;
  const killNow = (): void => {
    group.signal('SIGKILL');
  };
  const stop = (why: string): void => {
    stopped = true;
    say(`${why} The command gets ${stopSignal}${killAfterMs === 0 ? '' : `, and SIGKILL after ${killAfterMs} ms`}.`);
    group.signal(stopSignal);
    kill = setTimeout(killNow, killAfterMs);
  };
  const lost = (): void => {
    // It was told to stop before, because the deadline was near: now it has passed.
    if (stopped) killNow();
    else stop(`The lease is lost: ${whyLost(lease.signal.reason)}.`);
  };
  const lookAtClocks = (): void => {
    // Reads the clocks, and so may find the lease lost, which calls `lost`.
    const leftMs = lease.leftMs();
    if (isStopped()) return;
    if (leftMs <= killAfterMs)
      stop(`The lease is nearly lost: no renewal was confirmed, and ${Math.floor(leftMs)} ms are left.`);
    else look = setTimeout(lookAtClocks, Math.min(leftMs - killAfterMs, MAX_LOOK_MS));
  };
  // If this process ends by a defect of its own, nobody would renew the lease that the command relies on.
  process.once('exit', killNow);
  lease.signal.addEventListener('abort', lost);
  try {
    if (lease.signal.aborted) lost();
    else lookAtClocks();
    const end = await group.ended;
    if (end.type === 'notStarted') return end;
    if (!group.isGone()) {
      if (!isStopped())
        say('The command has ended; the lease is kept until the processes that it left behind have, too.');
      await group.untilGone();
    }
    // This process may have stood still past the deadline and looked at no clock since.
    lease.leftMs();
    return isStopped() ? { type: 'lost' } : end;
  } finally {
    clearTimeout(look);
    clearTimeout(kill);
    lease.signal.removeEventListener('abort', lost);
    process.off('exit', killNow);
  }
}

function whyLost(reason: unknown): string {
  const ended = reason instanceof LeaseLostError ? reason.ended : undefined;
  if (ended === undefined) return 'no renewal was confirmed before its safe deadline';
  const who = ended.by === '' ? '' : ` (${ended.by}: ${ended.note})`;
  return `${REASONS[ended.reason]}${who}`;
}
