/**
 * One attempt to own: a request id that is asked for again and again while it waits in the queue, until it is granted or
 * the time is over. It ends in one of two ways: its grant is handed out, or the id is withdrawn; never both.
 */
import type { AcquireCall, EndReason, Header, LeaseView, NotGranted } from '../base/api.js';
import { nameOf } from '../base/domain.js';
import type { Domain, RequestId } from '../base/ids.js';
import { ZERO_REVISION } from '../base/revision.js';
import type { Revision } from '../base/revision.js';
import { elapsedMs } from './clock.js';
import type { Moment, Timeline } from './clock.js';
import { leftMs } from './deadline.js';
import { AbortedError, ClosedError, ClusterError, retold, UnexpectedAnswerError } from './errors.js';
import type { FencepostError } from './errors.js';
import type { FirstHeader } from './first-header.js';
import type { AcquireSettings } from './options.js';
import { pause } from './pause.js';
import type { Surroundings } from './surroundings.js';
import type { CallOutcome, OpenCall, Transport } from './transport.js';

/** A lease that was granted, confirmed by a call sent at `sentAt`. */
export interface Granted {
  readonly type: 'granted';
  readonly lease: LeaseView;
  readonly header: Header;
  readonly sentAt: Moment;
}

/** What the attempts need. */
export interface AcquirePorts {
  readonly transport: Transport;
  readonly firstHeader: FirstHeader;
  readonly timeline: Timeline;
  readonly surroundings: Surroundings;
  readonly holder: string;
  readonly callTimeoutMs: number;
  /** Work that goes on after the answer to the caller; `close` waits for it for a while. */
  readonly background: (work: Promise<unknown>) => void;
}

/** What one request id came to; `again`: nothing was granted, and only a new id can be. */
type Attempt =
  Granted | NotGranted | { readonly type: 'again'; readonly error: FencepostError; readonly seen: Revision };

/** One request id, and until when it may be asked for. */
interface Asked {
  readonly requestId: RequestId;
  readonly seenRevision: Revision;
  /** What is left of the wait when the id was made. */
  readonly waitMs: number;
}

/** Before a call that could not be answered is repeated, and before a new request id, in milliseconds; drawn from half of it. */
const PAUSE_MS = 200;
/**
 * How long a node that has just answered `queued` may hold the next call, in milliseconds: long, so that the hand-over finds
 * a call that is held; but shorter than the grace in which the place is kept while nobody calls (5 s), so that there is time
 * to ask another node when this one falls silent. A node that has not answered yet gets the shorter time of any call.
 */
const HELD_ATTEMPT_MS = 4_000;
/** For a withdrawal that nobody waits for, in milliseconds. */
const WITHDRAW_MS = 30_000;

/** Waits in the queue, or asks once. Throws {@link FencepostError}. */
export async function acquire(ports: AcquirePorts, settings: AcquireSettings): Promise<Granted | NotGranted> {
  const startMs = ports.timeline.now().monotonicMs;
  const passedMs = (): number => ports.timeline.now().monotonicMs - startMs;
  /** Nobody waits longer than this, whatever happens. */
  const endsAtMs = startMs + settings.waitMs + ports.callTimeoutMs;
  if (ports.transport.seenRevision === ZERO_REVISION) await readHeader(ports, settings, ports.callTimeoutMs, passedMs);
  let seen = ZERO_REVISION;
  for (;;) {
    throwIfAborted(settings.signal);
    const { seenRevision } = ports.transport;
    const attempt = await attempts(ports, settings, endsAtMs, {
      requestId: ports.surroundings.newRequestId(),
      seenRevision: seen > seenRevision ? seen : seenRevision,
      waitMs: Math.ceil(Math.max(0, settings.waitMs - passedMs())),
    });
    if (attempt.type === 'notGranted') return asWaited(attempt, settings, passedMs());
    if (attempt.type !== 'again') return attempt;
    if (ports.timeline.now().monotonicMs >= endsAtMs) throw attempt.error;
    seen = attempt.seen;
    await pauseBriefly(ports, settings);
  }
}

/** A wait that ended between two calls was over by then: the last look, which does not wait, only tells what is in the way. */
function asWaited(refused: NotGranted, { waitMs }: AcquireSettings, passedMs: number): NotGranted {
  const inTheWay = refused.reason === 'held' || refused.reason === 'cool_down';
  return waitMs > 0 && passedMs >= waitMs && inTheWay ? { ...refused, reason: 'wait_over' } : refused;
}

/** Calls with one request id until it is granted, refused or over. It is withdrawn unless its grant is handed out. */
async function attempts(
  ports: AcquirePorts,
  settings: AcquireSettings,
  endsAtMs: number,
  asked: Asked,
): Promise<Attempt> {
  let known = false;
  /** The last call was answered `queued`. */
  let queuedNow = false;
  const giveBack = (): void => {
    withdraw(ports, settings.domain, asked.requestId);
  };
  for (;;) {
    const leftMs = endsAtMs - ports.timeline.now().monotonicMs;
    const limitMs = Math.max(1, Math.min(ports.callTimeoutMs, leftMs));
    const call = callOf(ports, settings, asked);
    const open = ports.transport.call(call, limitMs, queuedNow ? HELD_ATTEMPT_MS : undefined);
    const outcome = await abortable(open, settings.signal);
    queuedNow = false;
    if (outcome.type === 'failed') {
      const { error, revision } = outcome;
      // A place in the queue outlives a failover: the same id is asked for again for as long as the wait lasts.
      if (error.retryable && settings.waitMs > 0 && leftMs > limitMs && settings.signal?.aborted !== true) {
        known ||= error.outcome === 'unknown';
        settings.retrying?.(error);
        await pauseBriefly(ports, settings);
        continue;
      }
      if (known || error.outcome === 'unknown') giveBack();
      if (error.code === 'REQUEST_TOO_OLD') return { type: 'again', error, seen: revision };
      throw error;
    }
    const { answer, header, sentAt } = outcome;
    switch (answer.outcome.type) {
      case 'queued':
        known = true;
        queuedNow = true;
        if (settings.signal?.aborted === true || leftMs <= limitMs) {
          giveBack();
          throwIfAborted(settings.signal);
          return queuedTooLong(answer.outcome);
        }
        continue;
      case 'notGranted':
        // A copy that is still on its way would be granted once the domain is free, to nobody; not one whose wait is over:
        // its request has ended.
        if (answer.outcome.reason !== 'wait_over' && (known || outcome.earlierUnknown)) giveBack();
        return answer.outcome;
      case 'ended':
        return { type: 'again', error: overBefore(settings.domain, answer.outcome.ended.reason), seen: ZERO_REVISION };
      case 'granted': {
        const { lease } = answer.outcome;
        if (
          header === undefined ||
          answer.requestId !== asked.requestId ||
          (settings.slots === 1 ? lease.domain : nameOf(lease.domain)) !== settings.domain
        ) {
          giveBack();
          throw new UnexpectedAnswerError(
            `The answer to the acquire of ${settings.domain} is that of another call, or lacks its header.`,
          );
        }
        try {
          const confirmedAt = await confirmed(ports, lease, sentAt, endsAtMs, settings.signal);
          throwIfAborted(settings.signal);
          if (confirmedAt !== undefined) return { type: 'granted', lease, header, sentAt: confirmedAt };
        } catch (error) {
          giveBack();
          throw error;
        }
        giveBack();
        const over = new ClusterError('TIMED_OUT', `${lease.domain}: the grant was over before it was handed out.`, {
          outcome: 'not-done',
        });
        return { type: 'again', error: over, seen: ZERO_REVISION };
      }
    }
  }
}

function callOf(ports: AcquirePorts, settings: AcquireSettings, asked: Asked): AcquireCall {
  const { domain, ttlMs, metadata, coolDownMs, slots } = settings;
  return { type: 'acquire', domain, holder: ports.holder, ttlMs, metadata, coolDownMs, slots, ...asked };
}

/** The cluster still said "queued" when this client's own time was over. */
function queuedTooLong({ position, current }: { position: number; current: LeaseView | undefined }): NotGranted {
  return { type: 'notGranted', reason: 'wait_over', current, queueLength: position, coolDownLeftMs: 0 };
}

/** An earlier copy of the call was granted and its answer got lost, or the place in the queue was lost. */
function overBefore(domain: Domain, reason: EndReason): FencepostError {
  return new ClusterError('TIMED_OUT', `${domain}: the request was over (${reason}) before a grant was known.`, {
    outcome: 'not-done',
  });
}

/**
 * The moment from which the grant's deadline counts. When the granting call took so long that less than two thirds of
 * the TTL are left, the lease is renewed before it is handed out; a grant that cannot be was never held. Undefined when
 * the cluster says that it is over already.
 */
async function confirmed(
  ports: AcquirePorts,
  lease: LeaseView,
  grantSentAt: Moment,
  endsAtMs: number,
  signal: AbortSignal | undefined,
): Promise<Moment | undefined> {
  const { timeline, transport } = ports;
  let sentAt = grantSentAt;
  for (;;) {
    const now = timeline.now();
    if (elapsedMs(sentAt, now) <= lease.ttlMs / 3) return sentAt;
    const limitMs = Math.min(endsAtMs - now.monotonicMs, leftMs(sentAt, lease.ttlMs, now));
    if (limitMs <= 0) {
      throw new ClusterError('TIMED_OUT', `${lease.domain}: the grant came too late to be used, and was given back.`, {
        outcome: 'not-done',
      });
    }
    const ref = { domain: lease.domain, token: lease.token };
    const outcome = await abortable(transport.call({ type: 'renew', leases: [ref] }, limitMs), signal);
    if (outcome.type === 'failed') throw outcome.error;
    if (outcome.answer.results[0]?.type !== 'live') return undefined;
    // An answer that comes after the deadline that there was does not count (S11): the next round gives the grant back.
    if (leftMs(sentAt, lease.ttlMs, timeline.now()) > 0) sentAt = outcome.sentAt;
  }
}

/** So that the first request id, too, is made with a revision that its client has seen (F6). */
async function readHeader(
  { firstHeader }: AcquirePorts,
  { domain, signal }: AcquireSettings,
  limitMs: number,
  passedMs: () => number,
): Promise<void> {
  for (;;) {
    const read = firstHeader.read(domain, limitMs - passedMs());
    const outcome = await abortable(read, signal);
    if (outcome.type === 'answer') return;
    // A read that another acquire began ends with that one's time, not with ours.
    if (read.joined && signal?.aborted !== true && passedMs() < limitMs) continue;
    throw retold(outcome.error, outcome.error.message, { outcome: 'not-done', cause: outcome.error });
  }
}

/** Ends whatever the request got or may still get. Nobody waits for it. */
function withdraw(ports: AcquirePorts, domain: Domain, requestId: RequestId): void {
  ports.background(ports.transport.call({ type: 'withdraw', domain, requestId }, WITHDRAW_MS).result);
}

async function abortable<C extends Parameters<Transport['call']>[0]>(
  open: OpenCall<C>,
  signal: AbortSignal | undefined,
): Promise<CallOutcome<C>> {
  const abort = (): void => {
    open.cancel(abortedError(signal));
  };
  if (signal?.aborted === true) abort();
  signal?.addEventListener('abort', abort, { once: true });
  try {
    return await open.result;
  } finally {
    signal?.removeEventListener('abort', abort);
  }
}

function pauseBriefly({ surroundings }: AcquirePorts, { signal }: AcquireSettings): Promise<void> {
  return pause(surroundings.timers, PAUSE_MS * (0.5 + surroundings.random() / 2), signal);
}

function throwIfAborted(signal: AbortSignal | undefined): void {
  if (signal?.aborted === true) throw abortedError(signal);
}

/** Why an acquire was given up, as an error. */
export function abortedError(signal: AbortSignal | undefined): FencepostError {
  const reason: unknown = signal?.reason;
  if (reason instanceof ClosedError) return reason;
  return new AbortedError('The acquire was given up by its signal; what it was granted is withdrawn.', {
    cause: reason,
  });
}
