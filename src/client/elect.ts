/** Leadership of one process at a time: campaign, lead while the lease is held, campaign anew after a loss. */
import { MAX_WAIT_MS } from '../base/limits.js';
import { FencepostError } from './errors.js';
import type { Lease } from './lease.js';
import type { AcquireOptions } from './options.js';
import { pause } from './pause.js';
import type { Surroundings } from './surroundings.js';

/** For `elect`. There is no `waitMs`: a candidate waits for as long as it takes. */
export interface ElectOptions extends Omit<AcquireOptions, 'waitMs' | 'signal'> {
  /**
   * Ends the candidacy when it aborts: a campaign is given up, and whoever leads is told by `stop`, and resigns once
   * `lead` has returned. Default: none.
   */
  readonly signal?: AbortSignal;
  /**
   * Told of each error after which the campaign goes on by itself: no node answers, the queue is full, and the like.
   * While a whole cluster is away that is once for each `callTimeoutMs`, or more often. What it throws ends `elect`.
   * Default: nobody is told.
   */
  readonly onRetry?: (error: FencepostError) => void;
}

/** What an election needs from its client. */
export interface ElectPorts {
  readonly surroundings: Pick<Surroundings, 'timers' | 'random'>;
  /** Aborts, with the error to reject with, when the client is closed. */
  readonly close: AbortSignal;
  /** Acquires, and tells `retrying` what keeps it from doing so. */
  readonly acquire: (options: AcquireOptions, retrying: (error: FencepostError) => void) => Promise<Lease>;
}

type Lead<T> = (lease: Lease, stop: AbortSignal) => Promise<T> | T;

/** Between two campaigns of which the first failed, in milliseconds; drawn from half of it, so that candidates part. */
const PAUSE_MS = 1_000;

/** See `client.elect`. */
export async function elect<T>(ports: ElectPorts, options: ElectOptions, lead: Lead<T>): Promise<T | undefined> {
  const { signal, onRetry, ...asked } = options;
  const quit = new AbortController();
  const unlink = [follow(ports.close, quit), follow(signal, quit)];
  try {
    for (;;) {
      ports.close.throwIfAborted();
      if (signal?.aborted === true) return undefined;
      const lease = await campaign(ports, { ...asked, waitMs: MAX_WAIT_MS }, quit, onRetry);
      const term = lease === undefined ? undefined : await leadOnce(lease, quit.signal, lead);
      if (term !== undefined) return term.value;
    }
  } finally {
    for (const end of unlink) end();
  }
}

/** Waits to be elected. Undefined when that failed, or was given up. */
async function campaign(
  { surroundings, acquire }: ElectPorts,
  options: AcquireOptions,
  quit: AbortController,
  onRetry: ElectOptions['onRetry'],
): Promise<Lease | undefined> {
  let thrown: { readonly error: unknown } | undefined;
  const retrying = (error: FencepostError): void => {
    try {
      onRetry?.(error);
    } catch (fault) {
      // The request is given back before the fault is passed on.
      thrown ??= { error: fault };
      quit.abort(fault);
    }
  };
  try {
    return await acquire({ ...options, signal: quit.signal }, retrying);
  } catch (error) {
    if (thrown !== undefined) throw thrown.error;
    if (quit.signal.aborted) return undefined;
    if (!(error instanceof FencepostError) || !error.retryable) throw error;
    onRetry?.(error);
    await pause(surroundings.timers, PAUSE_MS * (0.5 + surroundings.random() / 2), quit.signal);
    return undefined;
  }
}

/** Leads under one lease. Undefined when it was told to stop, and nothing else went wrong. */
async function leadOnce<T>(lease: Lease, quit: AbortSignal, lead: Lead<T>): Promise<{ readonly value: T } | undefined> {
  const stop = new AbortController();
  const unlink = [follow(lease.signal, stop), follow(quit, stop)];
  try {
    const value = await lead(lease, stop.signal);
    return lease.state === 'lost' && !quit.aborted ? undefined : { value };
  } catch (error) {
    if (!stop.signal.aborted || !cameOf(error, stop.signal.reason)) throw error;
    return undefined;
  } finally {
    for (const end of unlink) end();
    await lease.release();
  }
}

/** True for what an operation throws that was ended by a signal with this reason. */
function cameOf(error: unknown, reason: unknown): boolean {
  if (error === reason) return true;
  return error instanceof Error && (error.name === 'AbortError' || error.cause === reason);
}

/** Aborts `control` with `signal`; gives how to end that. */
function follow(signal: AbortSignal | undefined, control: AbortController): () => void {
  const pass = (): void => {
    control.abort(signal?.reason);
  };
  if (signal?.aborted === true) pass();
  signal?.addEventListener('abort', pass, { once: true });
  return () => {
    signal?.removeEventListener('abort', pass);
  };
}
