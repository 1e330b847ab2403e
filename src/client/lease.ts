/** A lease as its holder sees it. */
import type { EndedView } from '../base/api.js';
import type { Granted } from './acquire.js';
import { LeaseLostError } from './errors.js';
import type { LossCause } from './handle.js';
import type { Kept, Renewer } from './renewer.js';
import { endInfo, leaseInfo } from './views.js';
import type { LeaseInfo } from './views.js';

/**
 * A lease that this process holds, or held. Renewed in the background until it is released or lost; a lost lease stays
 * lost: acquire anew, and get a new token, to go on. Send `token` with every protected operation and let a guard at
 * the resource compare it: the clocks below only save useless work.
 */
export interface Lease extends LeaseInfo, AsyncDisposable {
  /** The name of the cluster that granted it; a guard takes it as the issuer. */
  readonly cluster: string;
  /** The history of the cluster that granted it, 32 hex digits. */
  readonly incarnation: string;
  /**
   * Aborts when the lease is lost, and only then; its reason is a {@link LeaseLostError}. Not on `release`. A process
   * that was paused learns it when it runs again: look at {@link isHeld} before each act that no guard checks.
   */
  readonly signal: AbortSignal;
  /**
   * `held`; `jeopardy` (the clocks disagree or the process stood still by more than a third of the TTL: wait for the
   * renewal that is under way); `lost`; `released`. Reads the clocks now.
   */
  readonly state: 'held' | 'jeopardy' | 'lost' | 'released';
  /** True while the state is `held`. Reads the clocks now. */
  isHeld(): boolean;
  /**
   * Milliseconds until the safe deadline, if no further renewal is confirmed: how long work may still go on. 0 when lost
   * or released. Reads the clocks now; in `jeopardy` it is no promise.
   */
  leftMs(): number;
  /**
   * Ends the lease, so that the next one gets the domain at once. Call it when the work is done and not before; a
   * repeated call, or one for a lost lease, does nothing. Never rejects, and takes at most `callTimeoutMs`: when no node
   * can be reached for so long, it is tried on in the background until the lease has ended by itself, one TTL after its
   * last renewal.
   */
  release(): Promise<void>;
}

/** What a lease needs from its client. */
export interface LeasePorts {
  readonly renewer: Renewer;
  /** Sends Release, and repeats it, for no longer than the lease can live. Never rejects. */
  sendRelease(kept: Kept): Promise<void>;
  /** Work that goes on with nobody waiting; `close` waits for it for a while. */
  readonly background: (work: Promise<unknown>) => void;
}

/** Starts to keep a grant, and gives its handle. `coolDownMs` is what it was acquired with. */
export function holdLease(ports: LeasePorts, granted: Granted, coolDownMs: number): Lease {
  const abort = new AbortController();
  const { lease, header } = granted;
  const info = leaseInfo(lease);
  const ref = { domain: lease.domain, token: lease.token };
  let releasing: Promise<void> | undefined;
  const kept = ports.renewer.keep(ref, lease.ttlMs, granted.sentAt, (cause) => {
    // The last renewal may have reached the cluster though its answer never came: do not let the next one wait for it. But
    // a cool-down gives work that is still under way time to end, and only an expiry begins one.
    if (cause.type === 'deadline' && coolDownMs === 0) ports.background(ports.sendRelease(kept));
    abort.abort(new LeaseLostError(info.domain, info.token, endOf(cause)));
  });
  return {
    ...info,
    cluster: header.cluster,
    incarnation: header.incarnation,
    signal: abort.signal,
    get state() {
      return ports.renewer.look(kept).type;
    },
    isHeld: () => ports.renewer.look(kept).type === 'held',
    leftMs: () => ports.renewer.leftMs(kept),
    release() {
      releasing ??= ports.renewer.release(kept) ? ports.sendRelease(kept) : Promise.resolve();
      return releasing;
    },
    [Symbol.asyncDispose]() {
      return this.release();
    },
  };
}

function endOf(cause: LossCause): ReturnType<typeof endInfo> | undefined {
  const ended: EndedView | undefined = cause.type === 'ended' ? cause.ended : undefined;
  return ended === undefined ? undefined : endInfo(ended);
}
