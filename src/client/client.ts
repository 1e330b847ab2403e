/** The client: calls, leases and their renewal, over all endpoints of one cluster. */
import type { Call, Freshness, LeaseRef, NotGranted } from '../base/api.js';
import { MAX_PAGE_SIZE } from '../base/limits.js';
import { abortedError, acquire } from './acquire.js';
import type { AcquirePorts, Granted } from './acquire.js';
import type { OpenChannel } from './channel.js';
import { Timeline } from './clock.js';
import { ClosedError, NotGrantedError, UnexpectedAnswerError } from './errors.js';
import type { FencepostError } from './errors.js';
import { elect } from './elect.js';
import type { ElectOptions } from './elect.js';
import { FirstHeader } from './first-header.js';
import { holdLease } from './lease.js';
import type { Lease } from './lease.js';
import { observe } from './observe.js';
import type { Observation, ObservePorts } from './observe.js';
import {
  acquireSettings,
  checkedDomain,
  checkedLease,
  checkedNode,
  checkedSlots,
  checkWork,
  clientSettings,
  observeSettings,
} from './options.js';
import type { AcquireOptions, ClientSettings, ConnectOptions, ObserveOptions } from './options.js';
import { Renewer } from './renewer.js';
import type { Kept, RenewReply } from './renewer.js';
import { slotsOf } from './slots.js';
import type { Slots } from './slots.js';
import type { Surroundings } from './surroundings.js';
import { Transport } from './transport.js';
import type { AnswerTo, CallOutcome } from './transport.js';
import { nodeInfo } from './node-status.js';
import type { NodeStatus } from './node-status.js';
import { domainInfo, domainSummary, leaseInfo, tokenState } from './views.js';
import type { DomainInfo, DomainSummary, TokenState } from './views.js';
import type { OpenWatch } from './watch-channel.js';

interface Held {
  readonly type: 'held';
  readonly lease: Lease;
}

/** How long `close` waits for releases and withdrawals that are under way, in milliseconds. */
const CLOSE_MS = 2_000;
/** How long one endpoint gets to tell its status, in milliseconds. */
const STATUS_MS = 2_000;

/** Makes a client on these surroundings: for `connect`, for tests, and for the simulator. */
export let createClient: (
  options: ConnectOptions,
  surroundings: Surroundings,
  open: OpenChannel,
  openWatch: OpenWatch,
) => Client;

/** A client of one cluster, made by `connect`. It keeps the process alive while it holds leases. */
export class Client implements AsyncDisposable {
  readonly #settings: ClientSettings;
  readonly #surroundings: Surroundings;
  readonly #timeline: Timeline;
  readonly #transport: Transport;
  readonly #renewer: Renewer;
  readonly #background = new Set<Promise<unknown>>();
  readonly #acquiring = new Map<AbortController, Promise<unknown>>();
  readonly #acquirePorts: AcquirePorts;
  readonly #elections = new Set<AbortController>();
  readonly #closed = new AbortController();
  readonly #observePorts: ObservePorts;
  #closing: Promise<void> | undefined;

  static {
    createClient = (...all) => new Client(...all);
  }

  private constructor(options: ConnectOptions, surroundings: Surroundings, open: OpenChannel, openWatch: OpenWatch) {
    this.#settings = clientSettings(options);
    this.#surroundings = surroundings;
    this.#timeline = new Timeline(surroundings.clocks);
    const shared = { timeline: this.#timeline, timers: surroundings.timers, random: () => surroundings.random() };
    this.#transport = new Transport(this.#settings.endpoints, { ...shared, open });
    this.#renewer = new Renewer({
      ...shared,
      renew: (leases, timeoutMs, done) => {
        surface(this.#renewOnce(leases, timeoutMs).then(done));
      },
    });
    this.#acquirePorts = {
      transport: this.#transport,
      firstHeader: new FirstHeader(this.#transport),
      timeline: this.#timeline,
      surroundings,
      holder: this.#settings.holder,
      callTimeoutMs: this.#settings.callTimeoutMs,
      background: (work) => {
        this.#background.add(work);
        surface(work.finally(() => this.#background.delete(work)));
      },
    };
    this.#observePorts = {
      endpoints: this.#settings.endpoints,
      open: openWatch,
      timeline: this.#timeline,
      surroundings,
      giveUpMs: this.#settings.callTimeoutMs,
      closed: this.#closed.signal,
    };
  }

  /** The configured endpoints. */
  get endpoints(): readonly string[] {
    return this.#settings.endpoints;
  }

  /**
   * Acquires the lease of a domain. Throws `NotGrantedError` when another holds it and `waitMs` is over, and
   * {@link FencepostError} when the cluster cannot be asked; then nothing stays granted.
   */
  acquire(domain: string, options: AcquireOptions = {}): Promise<Lease> {
    return this.#acquireOrThrow(domain, options);
  }

  /**
   * As {@link acquire}, but undefined when it was not granted. Throws `NotGrantedError` only where no repetition can
   * help: the name is in use with another number of slots.
   */
  async tryAcquire(domain: string, options: AcquireOptions = {}): Promise<Lease | undefined> {
    const outcome = await this.#acquire(domain, options);
    if (outcome.type === 'notGranted' && outcome.reason === 'slots_differ') throw notGranted(domain, outcome, options);
    return outcome.type === 'held' ? outcome.lease : undefined;
  }

  /** Acquires, runs `work`, and releases whatever becomes of it. `work` watches `lease.signal` itself. */
  async withLease<T>(domain: string, options: AcquireOptions, work: (lease: Lease) => Promise<T> | T): Promise<T> {
    checkWork('withLease', work);
    const lease = await this.acquire(domain, options);
    try {
      return await work(lease);
    } finally {
      await lease.release();
    }
  }

  /**
   * For work of which one process at a time is in charge: schedulers, failover controllers. Waits in the domain's queue
   * for as long as it takes, then calls `lead`; when the lease is lost, campaigns anew, with a new token, once `lead` has
   * returned. So `lead` never runs twice at once in this process; whether a predecessor elsewhere has stopped, only a
   * guard can tell.
   *
   * `stop`, the second argument of `lead`, aborts when the lease is lost, when `options.signal` aborts or when the client
   * is closed: `lead` then stops its work and returns, or throws what an aborted operation throws.
   *
   * Resolves with what `lead` returns while the lease is held, or after `options.signal` aborted; with undefined when that
   * signal ended the campaign. Rejects with what `lead` throws for another reason than `stop`, and with a
   * {@link FencepostError} that no repetition cures; others are told to `options.onRetry` and the campaign goes on. Nothing
   * is held once it has settled.
   */
  async elect<T>(
    domain: string,
    options: ElectOptions,
    lead: (lease: Lease, stop: AbortSignal) => Promise<T> | T,
  ): Promise<T | undefined> {
    acquireSettings(domain, options);
    checkWork('elect', lead);
    const close = new AbortController();
    this.#elections.add(close);
    if (this.#closing !== undefined) close.abort(new ClosedError('The client was closed.', { outcome: 'not-done' }));
    try {
      const acquireLease = (settings: AcquireOptions, retrying: (error: FencepostError) => void): Promise<Lease> =>
        this.#acquireOrThrow(domain, settings, retrying);
      return await elect(
        { surroundings: this.#surroundings, close: close.signal, acquire: acquireLease },
        options,
        lead,
      );
    } finally {
      this.#elections.delete(close);
    }
  }

  /**
   * A name with `count` slots (1 to 1 000), each of which one lease can be of: at most `count` holders at once. The first
   * acquire of the name fixes the number for good. Asks no node.
   */
  slots(name: string, count: number): Slots {
    return slotsOf(this, checkedSlots(name, count), count);
  }

  /**
   * Renews a lease that this client does not keep itself: for tools that were given a token. A worker needs no such
   * call; the leases that it acquired are renewed by themselves.
   */
  async renew(domain: string, token: bigint): Promise<TokenState> {
    const answer = await this.#request({ type: 'renew', leases: [checkedLease(domain, token)] });
    const [state] = answer.results;
    if (state === undefined) throw new UnexpectedAnswerError('A renewal of one lease came back without a result.');
    return tokenState(state);
  }

  /** Ends a lease by its token: for tools. True when this call, or an earlier copy of it, ended it. */
  async release(domain: string, token: bigint): Promise<boolean> {
    return (await this.#request({ type: 'release', lease: checkedLease(domain, token) })).released;
  }

  /**
   * Is this token the current one of its domain? No guard: the answer can be old when you act on it. Let the resource
   * compare tokens.
   */
  async verify(domain: string, token: bigint, freshness: Freshness = 'linearizable'): Promise<TokenState> {
    const answer = await this.#request({ type: 'verify', lease: checkedLease(domain, token), freshness });
    return tokenState(answer.outcome);
  }

  /**
   * What is held, closed or waited for, by prefix and in byte order. Pages are fetched as they are needed, so the whole is
   * no snapshot of one moment.
   */
  async *list(prefix = '', freshness: Freshness = 'linearizable'): AsyncGenerator<DomainSummary> {
    let after = '';
    do {
      const page = await this.#request({ type: 'list', prefix, pageSize: MAX_PAGE_SIZE, after, freshness });
      yield* page.domains.map(domainSummary);
      after = page.next;
    } while (after !== '');
  }

  /** Who holds a domain, and who waits for it. */
  async get(domain: string, freshness: Freshness = 'linearizable'): Promise<DomainInfo> {
    return domainInfo(await this.#request({ type: 'get', domain: checkedDomain(domain), freshness }));
  }

  /**
   * What happens to domains whose names begin with `prefix` (as bytes; '' for all), each change once and in order, whatever
   * becomes of single nodes. To mirror a state: begin to observe, take the first observation, then `list`; from there on go
   * by the tokens. Throws `CompactedError` when changes were missed for good (an observer that is too slow, or a `from` too
   * long ago), and {@link FencepostError} when no node has served for `callTimeoutMs`. Has a connection of its own.
   */
  observe(prefix = '', options: ObserveOptions = {}): AsyncGenerator<Observation, void, undefined> {
    return observe(this.#observePorts, observeSettings(prefix, options));
  }

  /** Asks every endpoint about itself, all at once; one that does not answer within two seconds comes with its error. */
  async status(): Promise<NodeStatus[]> {
    return Promise.all(
      this.endpoints.map(async (endpoint): Promise<NodeStatus> => {
        const outcome = await this.#transport.once({ type: 'getStatus' }, STATUS_MS, endpoint).result;
        if (outcome.type === 'failed') return { type: 'failed', endpoint, error: outcome.error };
        const { answer, header, version } = outcome;
        const { cluster, incarnation } = header ?? { cluster: '', incarnation: '' };
        return { type: 'answered', endpoint, cluster, incarnation, version, status: nodeInfo(answer) };
      }),
    );
  }

  /** Hands leadership to a node, or to the voter that is furthest ahead; gives the new leader's name. */
  async transferLeadership(to?: string): Promise<string> {
    const node = to === undefined ? undefined : checkedNode(to);
    return (await this.#request({ type: 'transferLeadership', to: node })).leader;
  }

  /**
   * Ends a lease whoever holds it; `note` (1–500 bytes) is for the audit log and for the holder. The old holder may
   * believe in its lease until its own deadline; only a guard stops it. Gives true when it ended the lease, false when
   * the token is not the live one.
   */
  async forceRelease(domain: string, token: bigint, note: string): Promise<boolean> {
    return (await this.#request({ type: 'forceRelease', ...checkedLease(domain, token), note })).released;
  }

  /** Releases what is held, waits up to two seconds for that, and closes the connections. Open calls end with CLOSED. */
  close(): Promise<void> {
    this.#closing ??= this.#close();
    return this.#closing;
  }

  /** As {@link close}. */
  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  async #close(): Promise<void> {
    const closed = new ClosedError('The client was closed.');
    this.#closed.abort();
    for (const abort of [...this.#elections, ...this.#acquiring.keys()]) abort.abort(closed);
    const releases = this.#renewer
      .kept()
      .filter((kept) => this.#renewer.release(kept))
      .map((kept) => this.#sendRelease(kept));
    const tidied = async (): Promise<void> => {
      // What was under way gives its request id back in the background; that begins once it has ended.
      await Promise.allSettled(this.#acquiring.values());
      await Promise.all([...releases, ...this.#background]);
    };
    let cancel: () => void = () => undefined;
    const enough = new Promise<void>((resolve) => {
      cancel = this.#surroundings.timers.set(CLOSE_MS, resolve);
    });
    await Promise.race([tidied(), enough]);
    cancel();
    this.#transport.close();
  }

  async #acquireOrThrow(
    domain: string,
    options: AcquireOptions,
    retrying?: (error: FencepostError) => void,
  ): Promise<Lease> {
    const outcome = await this.#acquire(domain, options, retrying);
    if (outcome.type === 'held') return outcome.lease;
    throw notGranted(domain, outcome, options);
  }

  async #acquire(
    domain: string,
    options: AcquireOptions,
    retrying?: (error: FencepostError) => void,
  ): Promise<Held | NotGranted> {
    const settings = acquireSettings(domain, options);
    if (this.#closing !== undefined) throw new ClosedError('The client was closed.', { outcome: 'not-done' });
    const { signal } = settings;
    const abort = new AbortController();
    const pass = (): void => {
      abort.abort(signal?.reason);
    };
    if (signal?.aborted === true) pass();
    signal?.addEventListener('abort', pass, { once: true });
    const work = acquire(this.#acquirePorts, { ...settings, signal: abort.signal, retrying });
    this.#acquiring.set(abort, work);
    try {
      const outcome = await work;
      if (outcome.type === 'notGranted') return outcome;
      const lease = this.#hold(outcome, settings.coolDownMs);
      if (!abort.signal.aborted) return { type: 'held', lease };
      // Given up in the very moment of the grant.
      this.#acquirePorts.background(lease.release());
      throw abortedError(abort.signal);
    } finally {
      this.#acquiring.delete(abort);
      signal?.removeEventListener('abort', pass);
    }
  }

  #hold(granted: Granted, coolDownMs: number): Lease {
    return holdLease(
      {
        renewer: this.#renewer,
        sendRelease: (kept) => this.#sendRelease(kept),
        background: this.#acquirePorts.background,
      },
      granted,
      coolDownMs,
    );
  }

  async #request<C extends Call>(call: C): Promise<AnswerTo<C>> {
    const outcome: CallOutcome<C> = await this.#transport.call(call, this.#settings.callTimeoutMs).result;
    if (outcome.type === 'failed') throw outcome.error;
    return outcome.answer;
  }

  async #sendRelease(kept: Kept): Promise<void> {
    const call = { type: 'release', lease: kept.ref } as const;
    const waitedMs = Math.min(kept.ttlMs, this.#settings.callTimeoutMs);
    const outcome = await this.#transport.call(call, waitedMs).result;
    if (outcome.type === 'answer' || !outcome.error.retryable || waitedMs === kept.ttlMs) return;
    // Nobody waits for it any longer, but the next holder does, until the lease has ended by itself.
    this.#acquirePorts.background(this.#transport.call(call, kept.ttlMs - waitedMs).result);
  }

  async #renewOnce(leases: readonly LeaseRef[], timeoutMs: number): Promise<RenewReply> {
    const outcome = await this.#transport.once({ type: 'renew', leases }, timeoutMs).result;
    if (outcome.type === 'failed') return { type: 'failed' };
    const { results } = outcome.answer;
    return results.length === leases.length ? { type: 'answer', sentAt: outcome.sentAt, results } : { type: 'failed' };
  }
}

function notGranted(domain: string, { reason, current }: NotGranted, { waitMs = 0 }: AcquireOptions): NotGrantedError {
  return new NotGrantedError(domain, reason, current === undefined ? undefined : leaseInfo(current), waitMs);
}

/** A failure of this work is a defect of the package, and must not be swallowed. */
function surface(work: Promise<unknown>): void {
  work.catch((defect: unknown) => {
    queueMicrotask(() => {
      throw defect;
    });
  });
}
