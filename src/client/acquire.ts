/**
 * One attempt to own after another, until one is granted or the time is over. Each attempt has a request id of its own,
 * and each ends in one of two ways: its grant is handed out, or its id is withdrawn; never both.
 */
import type { AcquireCall, Header, LeaseView } from '../base/api.js';
import type { Domain, RequestId } from '../base/ids.js';
import { ZERO_REVISION } from '../base/revision.js';
import type { Revision } from '../base/revision.js';
import { elapsedMs } from './clock.js';
import type { Moment, Timeline } from './clock.js';
import { leftMs } from './deadline.js';
import { FencepostError } from './errors.js';
import type { AcquireSettings } from './options.js';
import type { Surroundings } from './surroundings.js';
import type { CallOutcome, OpenCall, Transport } from './transport.js';

/** A lease that was granted, confirmed by a call sent at `sentAt`. */
export interface Granted {
  readonly type: 'granted';
  readonly lease: LeaseView;
  readonly header: Header;
  readonly sentAt: Moment;
}

/** Not granted in the time given. */
export interface NotGranted {
  readonly type: 'notGranted';
  readonly reason: 'held' | 'recovering';
  readonly current: LeaseView | undefined;
}

/** What the attempts need. */
export interface AcquirePorts {
  readonly transport: Transport;
  readonly timeline: Timeline;
  readonly surroundings: Surroundings;
  readonly holder: string;
  readonly callTimeoutMs: number;
  /** Work that goes on after the answer to the caller; `close` waits for it for a while. */
  readonly background: (work: Promise<unknown>) => void;
}

/** What one attempt came to; `again`: nothing was granted, and only a new request id can be. */
type Attempt =
  Granted | NotGranted | { readonly type: 'again'; readonly error: FencepostError; readonly seen: Revision };

/** The first pause between two attempts while another holds the domain, in milliseconds; it grows by half each time. */
const FIRST_PAUSE_MS = 100;
const MAX_PAUSE_MS = 1_000;
/** For a withdrawal that nobody waits for, in milliseconds. */
const WITHDRAW_MS = 30_000;

/** Tries to own. Throws {@link FencepostError}. */
export async function acquire(ports: AcquirePorts, settings: AcquireSettings): Promise<Granted | NotGranted> {
  const { timeline, surroundings } = ports;
  const startMs = timeline.now().monotonicMs;
  const passedMs = (): number => timeline.now().monotonicMs - startMs;
  let pauseMs = FIRST_PAUSE_MS;
  let seen = ZERO_REVISION;
  for (;;) {
    throwIfAborted(settings.signal);
    const limitMs = Math.min(ports.callTimeoutMs, settings.waitMs + ports.callTimeoutMs - passedMs());
    const attempt = await attemptOnce(ports, settings, seen, limitMs);
    switch (attempt.type) {
      case 'granted':
        return attempt;
      case 'notGranted':
        if (passedMs() >= settings.waitMs) return attempt;
        break;
      case 'again':
        if (passedMs() >= settings.waitMs + ports.callTimeoutMs) throw attempt.error;
        seen = attempt.seen;
        break;
    }
    const delayMs = pauseMs * (0.5 + surroundings.random() / 2);
    const untilOverMs = attempt.type === 'notGranted' ? settings.waitMs - passedMs() : Infinity;
    await pause(surroundings, Math.max(0, Math.min(delayMs, untilOverMs)), settings.signal);
    pauseMs = Math.min(pauseMs * 1.5, MAX_PAUSE_MS);
  }
}

async function attemptOnce(
  ports: AcquirePorts,
  settings: AcquireSettings,
  seen: Revision,
  limitMs: number,
): Promise<Attempt> {
  const { transport, timeline, surroundings } = ports;
  const endsAtMs = timeline.now().monotonicMs + limitMs;
  if (transport.seenRevision === ZERO_REVISION) await readHeader(ports, settings, limitMs);
  const requestId = surroundings.newRequestId();
  const call: AcquireCall = {
    type: 'acquire',
    domain: settings.domain,
    requestId,
    holder: ports.holder,
    ttlMs: settings.ttlMs,
    metadata: settings.metadata,
    seenRevision: seen > transport.seenRevision ? seen : transport.seenRevision,
  };
  const leftForCallMs = Math.max(1, endsAtMs - timeline.now().monotonicMs);
  const outcome = await abortable(transport.call(call, leftForCallMs), settings.signal);
  const giveBack = (): void => {
    withdraw(ports, settings.domain, requestId);
  };
  if (outcome.type === 'failed') {
    const { error, revision } = outcome;
    if (error.outcome === 'unknown') giveBack();
    if (error.code === 'REQUEST_TOO_OLD') return { type: 'again', error, seen: revision };
    throw error;
  }
  const { answer, header, sentAt } = outcome;
  switch (answer.outcome.type) {
    case 'notGranted':
      // A copy that is still on its way would be granted once the domain is free, to nobody.
      if (outcome.earlierUnknown) giveBack();
      return answer.outcome;
    case 'ended':
      // An earlier copy of this call was granted, its answer got lost, and that lease is over.
      return {
        type: 'again',
        error: new FencepostError(
          'NOT_GRANTED',
          `${settings.domain}: the grant was over (${answer.outcome.ended.reason}) before it was known.`,
        ),
        seen,
      };
    case 'granted': {
      const { lease } = answer.outcome;
      if (header === undefined || answer.requestId !== requestId || lease.domain !== settings.domain) {
        giveBack();
        throw new FencepostError(
          'UNEXPECTED_ANSWER',
          `The answer to the acquire of ${settings.domain} is that of another call, or lacks its header.`,
        );
      }
      try {
        const confirmedAt = await confirmed(ports, lease, sentAt, endsAtMs, settings.signal);
        throwIfAborted(settings.signal);
        return { type: 'granted', lease, header, sentAt: confirmedAt };
      } catch (error) {
        giveBack();
        throw error;
      }
    }
  }
}

/**
 * The moment from which the grant's deadline counts. When the granting call took so long that less than two thirds of
 * the TTL are left, the lease is renewed before it is handed out; a grant that cannot be was never held.
 */
async function confirmed(
  ports: AcquirePorts,
  lease: LeaseView,
  grantSentAt: Moment,
  endsAtMs: number,
  signal: AbortSignal | undefined,
): Promise<Moment> {
  const { timeline, transport } = ports;
  let sentAt = grantSentAt;
  for (;;) {
    const now = timeline.now();
    if (elapsedMs(sentAt, now) <= lease.ttlMs / 3) return sentAt;
    const limitMs = Math.min(endsAtMs - now.monotonicMs, leftMs(sentAt, lease.ttlMs, now));
    if (limitMs <= 0) {
      throw new FencepostError(
        'TIMED_OUT',
        `${lease.domain}: the grant came too late to be used, and was given back.`,
        { outcome: 'not-done' },
      );
    }
    const ref = { domain: lease.domain, token: lease.token };
    const outcome = await abortable(transport.call({ type: 'renew', leases: [ref] }, limitMs), signal);
    if (outcome.type === 'failed') throw outcome.error;
    if (outcome.answer.results[0]?.type !== 'live') {
      throw new FencepostError('NOT_GRANTED', `${lease.domain}: the grant was over before it was handed out.`);
    }
    // An answer that comes after the deadline that there was does not count (S11): the next round gives the grant back.
    if (leftMs(sentAt, lease.ttlMs, timeline.now()) > 0) sentAt = outcome.sentAt;
  }
}

/** So that the first request id, too, is made with a revision that its client has seen (F6). */
async function readHeader(ports: AcquirePorts, settings: AcquireSettings, limitMs: number): Promise<void> {
  const call = { type: 'get', domain: settings.domain, freshness: 'local' } as const;
  const outcome = await abortable(ports.transport.call(call, limitMs), settings.signal);
  if (outcome.type === 'failed') {
    throw new FencepostError(outcome.error.code, outcome.error.message, { outcome: 'not-done', cause: outcome.error });
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

function pause(surroundings: Surroundings, delayMs: number, signal: AbortSignal | undefined): Promise<void> {
  return new Promise((resolve) => {
    const end = (): void => {
      cancel();
      signal?.removeEventListener('abort', end);
      resolve();
    };
    const cancel = surroundings.timers.set(delayMs, end);
    signal?.addEventListener('abort', end, { once: true });
  });
}

function throwIfAborted(signal: AbortSignal | undefined): void {
  if (signal?.aborted === true) throw abortedError(signal);
}

/** Why an acquire was given up, as an error. */
export function abortedError(signal: AbortSignal | undefined): FencepostError {
  const reason: unknown = signal?.reason;
  if (reason instanceof FencepostError && reason.code === 'CLOSED') return reason;
  return new FencepostError('ABORTED', 'The acquire was given up by its signal; what it was granted is withdrawn.', {
    cause: reason,
  });
}
