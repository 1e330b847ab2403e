/**
 * Stalls of the disk and of the loop (P15, design 5). A leader whose oldest write is older than the election time-out,
 * or whose process did not run for that long, steps down before it answers anything, and does not campaign meanwhile.
 */
import { step } from '../raft/raft.js';
import type { Effect as RaftEffect } from '../raft/types.js';
import { log } from './state.js';
import type { Context, WatchdogState } from './state.js';

/** Nothing under way. */
export function createWatchdog(): WatchdogState {
  return { writes: new Map(), lastStepAt: undefined, stalled: false };
}

/** A write was handed to the store. */
export function writeBegun(context: Context, name: string): void {
  context.watchdog.writes.set(name, context.time.nowMs);
}

/** A write is durable. */
export function writeEnded(context: Context, name: string): void {
  context.watchdog.writes.delete(name);
}

/**
 * Called at the start of each step, before anything of it is handled: a gap since the step before means that the
 * process was stopped or the loop was busy, and what waits in the inbox is older than it looks.
 */
export function watchLoop(context: Context): RaftEffect[] {
  const { watchdog, options, time } = context;
  const gap = watchdog.lastStepAt === undefined ? 0 : time.nowMs - watchdog.lastStepAt;
  watchdog.lastStepAt = time.nowMs;
  if (gap <= options.electionMaxMs || watchdog.stalled) return [];
  log(context, 'warn', 'the process did not run for longer than the election time-out', { ms: Math.round(gap) });
  return [
    ...step(context.raft, { type: 'stalled', stalled: true }),
    ...step(context.raft, { type: 'stalled', stalled: false }),
  ];
}

/** Called at each tick: is the oldest write overdue? */
export function watchDisk(context: Context): RaftEffect[] {
  const { watchdog, options, time, raft } = context;
  // Written in the order submitted, so the first is the oldest.
  const [oldest] = watchdog.writes.values();
  const stalled = oldest !== undefined && time.nowMs - oldest > options.electionMaxMs;
  if (stalled === watchdog.stalled) return [];
  watchdog.stalled = stalled;
  if (stalled) {
    const text = `a write to the disk has taken more than ${options.electionMaxMs} ms: this node does not lead until it ends`;
    context.alarms.set('stall', text);
    log(context, 'warn', text);
  } else {
    context.alarms.delete('stall');
    log(context, 'info', 'the disk answers again');
  }
  return step(raft, { type: 'stalled', stalled });
}
