/**
 * A guard for what one process owns and no store protects: a value in memory, an open file, a device behind a serial
 * line. The owner stands in front of it as a small server; callers send domain, token, cluster and incarnation with
 * every request, and the owner acts only through this guard.
 *
 * The fences lie in the memory of the process and are lost with it. That is right for what is lost with it too, or for
 * what has nobody else who could touch it while the process is down and is opened anew by the next holder. What outlives
 * the process needs a guard whose fence does: after a restart this one takes the first token that comes, a stale one
 * also.
 *
 * @packageDocumentation
 */
import { admitAll, checkLease, copyOf, fenceOf, issuerOf, leasesOf } from './fence.js';
import type { Fence } from './fence.js';
import { Mutex } from './mutex.js';
import type { Applied, FencedLease, Rejected, Stale } from './types.js';
import { inTime, workTimeoutOf } from './work-time.js';
import type { WorkTimeOptions } from './work-time.js';

export type { Fence } from './fence.js';
export type { Applied, FencedLease, Rejected, Stale } from './types.js';
export type { WorkTimeOptions } from './work-time.js';

/** How a guarded operation ends here: neither `missing` nor `retry` occurs. What the work throws is thrown. */
export type MemoryOutcome<T> = Applied<T> | Stale | Rejected;

/**
 * Carries out one effect on the resource, and resolves or rejects as it does. Throws, and does nothing, when the run is
 * over. `signal` aborts when the time of the run is up: an effect that can be cut short listens to it.
 */
export type Act<R> = <T>(effect: (resource: R, signal: AbortSignal) => Promise<T> | T) => Promise<T>;

/** What one run does: thinks, and acts on the resource through `act` alone. */
export type MemoryWork<R, T> = (act: Act<R>) => Promise<T> | T;

/** A tenure that has raised its fence: from here on no lower token is accepted, so what it reads stays true. */
export interface MemoryTenure<R> {
  /** Whose fence it raised. */
  readonly domain: string;
  /** Where the fence stands at least. */
  readonly token: bigint;
  /** As {@link MemoryFence.run} under the lease that was opened. */
  run<T>(work: MemoryWork<R, T>): Promise<MemoryOutcome<T>>;
}

/** A guard in front of one resource of this process. */
export interface MemoryFence<R> {
  /**
   * Begins a tenure: raises the fence to the lease's token before anything is read. Do this first; without it a
   * predecessor may still write between your first read and your first write.
   */
  open(lease: FencedLease): Promise<MemoryOutcome<MemoryTenure<R>>>;
  /**
   * Checks and raises the fence, then runs `work`. When the lease is stale or rejected, `work` is not called. Runs of one
   * domain follow one another; those of different domains do not wait for each other, so that a holder that hangs is in
   * nobody else's way. An operation on several domains takes a lease of each: all are checked and raised, or none. It has its
   * turn in one domain after the other, and keeps what it has while it waits for the next.
   *
   * Nothing is undone when `work` throws: what has to happen whole goes into one `act`. When the work is not done within
   * the time limit, `run` rejects and `act` begins nothing more. An effect that has begun cannot be taken back, so the
   * domain's next run waits for its end: give effects on a device that may hang a limit of their own.
   */
  run<T>(lease: FencedLease | readonly FencedLease[], work: MemoryWork<R, T>): Promise<MemoryOutcome<T>>;
  /** The fence of a domain, undefined when nobody has acted under it since the process began. For operators. */
  fence(domain: string): Fence | undefined;
  /**
   * For operators: from now on the fence of this domain takes tokens of the cluster `cluster`, and no others. It
   * stays where it is, so the new cluster's tokens have to be greater (form it with a floor). False when there is no fence.
   */
  allowIssuer(domain: string, cluster: string): boolean;
  /**
   * For operators: sets the fence to what this lease says, also lower than it stands. For one case: somebody presented a
   * token that the cluster never granted, and shut the domain for all to come. It has to be the lease that was granted
   * last; after an older one stale holders pass.
   */
  reset(lease: FencedLease): void;
}

/** One domain. Kept for as long as the process runs: a fence that is forgotten lets the stale holder pass. */
interface Place {
  readonly mutex: Mutex;
  fence: Fence | undefined;
}

/** Of each resource, however many guards are made of it. */
const places = new WeakMap<object, Map<string, Place>>();

/** A guard in front of `resource`, which is handed out only within {@link Act}: keep no other way to it. */
export function memoryFence<R extends object>(resource: R, options: WorkTimeOptions = {}): MemoryFence<R> {
  const limitMs = workTimeoutOf(options);
  const known = places.get(resource) ?? new Map<string, Place>();
  places.set(resource, known);

  const placeOf = (domain: string): Place => {
    const place = known.get(domain) ?? { mutex: new Mutex(), fence: undefined };
    known.set(domain, place);
    return place;
  };

  const admitted = async <T>(
    leases: readonly FencedLease[],
    turn: Turn<R>,
    work: MemoryWork<R, T>,
  ): Promise<MemoryOutcome<T>> => {
    const verdict = admitAll(leases, (domain) => placeOf(domain).fence);
    if (verdict.status !== 'admitted') return verdict;
    // Before the work, because the effects cannot be undone: a fence too high refuses the stale, one too low does not.
    for (const { domain, fence } of verdict.raised) placeOf(domain).fence = fence;
    const value = await inTime(turn.run(work), limitMs, () => {
      turn.giveUp();
      const domains = leases.map(({ domain }) => domain).join(', ');
      return new Error(
        `the guarded work on ${domains} was not done within workTimeoutMs = ${limitMs}: no further effect begins, and ` +
          'what had begun may still come to its end; the next run waits for that',
      );
    });
    return { status: 'applied', value, earlierIncarnation: verdict.earlierIncarnation };
  };

  const run = async <T>(
    given: FencedLease | readonly FencedLease[],
    work: MemoryWork<R, T>,
  ): Promise<MemoryOutcome<T>> => {
    const leases = leasesOf(given);
    const mutexes = leases.map(({ domain }) => placeOf(domain).mutex);
    const turn = new Turn(resource);
    // The caller is answered when its time is up, whatever its effects do; its successor waits for them.
    return new Promise((resolve, reject) => {
      const whole = inTurn(mutexes, async () => {
        await admitted(leases, turn, work).then(resolve, reject);
        await turn.quiet();
      });
      whole.catch(reject);
    });
  };

  return {
    run,
    async open(lease) {
      const opened = copyOf(lease);
      const { domain, token } = opened;
      const raised = await run(opened, () => undefined);
      if (raised.status !== 'applied') return raised;
      return { ...raised, value: { domain, token, run: (work) => run(opened, work) } };
    },
    fence: (domain) => known.get(domain)?.fence,
    allowIssuer(domain, cluster) {
      const place = known.get(domain);
      if (place?.fence === undefined) return false;
      place.fence = { ...place.fence, issuer: issuerOf(cluster) };
      return true;
    },
    reset(lease) {
      checkLease(lease);
      placeOf(lease.domain).fence = fenceOf(lease);
    },
  };
}

/** Runs `work` with all of them held; they are taken in the order given, which is the same for everybody. */
function inTurn(mutexes: readonly Mutex[], work: () => Promise<void>): Promise<void> {
  const [first, ...others] = mutexes;
  return first === undefined ? work() : first.run(() => inTurn(others, work));
}

/** The effects of one run. */
class Turn<R> {
  readonly #resource: R;
  readonly #abort = new AbortController();
  readonly #running = new Set<Promise<unknown>>();
  #open = true;

  constructor(resource: R) {
    this.#resource = resource;
  }

  async run<T>(work: MemoryWork<R, T>): Promise<T> {
    try {
      return await work((effect) => this.#act(effect));
    } finally {
      this.#open = false;
    }
  }

  /** Nothing begins any more; what has begun is told. */
  giveUp(): void {
    this.#open = false;
    this.#abort.abort(new Error('the time of the guarded run is up'));
  }

  /** Resolves when no effect is in progress. Nothing may begin any more when this is called. */
  async quiet(): Promise<void> {
    await Promise.allSettled(this.#running);
  }

  async #act<T>(effect: (resource: R, signal: AbortSignal) => Promise<T> | T): Promise<T> {
    if (!this.#open) throw new Error('the run of this handle is over: nothing is done through it any more');
    const running = (async () => effect(this.#resource, this.#abort.signal))();
    this.#running.add(running);
    try {
      return await running;
    } finally {
      this.#running.delete(running);
    }
  }
}
