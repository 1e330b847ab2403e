/**
 * The life of a leadership: it begins with the role, serves from the moment its own no-op is applied, times leases,
 * and is thrown away as a whole when the node steps down (S9.1).
 */
import { assert } from '../base/assert.js';
import { MIN_REVISION_HEADROOM_US } from '../base/limits.js';
import { revisionAt } from '../base/revision.js';
import { leaseOf, liveLeases } from '../lease/lookup.js';
import { isLeader, lastIndex } from '../raft/view.js';
import { createClock, enqueue, expireIgnored, takeDue, takeOver, timeFound } from './clock.js';
import type { Timed } from './clock.js';
import { scanCoolDowns, takeOverCoolDowns } from './cooling.js';
import { createDueList, MAX_DUE_A_TICK } from './due.js';
import { freeingBatches } from './passing.js';
import { batches } from './batches.js';
import { proposeInternal } from './proposing.js';
import { isFlagged } from './renewal.js';
import { handBack, serveWaiting } from './serving.js';
import { log } from './state.js';
import type { Context, Leadership } from './state.js';
import { scanWaits } from './wait-ends.js';
import { createWaits, holdEnded, takeOverWaits } from './waiting.js';

/** What could not be proposed, because a hand-over is under way or there is too much work, is tried again after this. */
const RETRY_MS = 50;

/** The core's role, term or leader changed: begins or ends the leadership to match. */
export function followRole(context: Context): void {
  const { raft } = context;
  const { term } = raft.hard;
  const leads = isLeader(raft);
  const { leadership } = context;
  if (leadership !== undefined && (!leads || leadership.term !== term)) {
    context.leadership = undefined;
    for (const { to, keepUntil } of context.outgoing.values()) {
      if (keepUntil === undefined) context.out.push({ type: 'abortSnapshot', to });
    }
    context.outgoing.clear();
    handBack(context, leadership);
    log(context, 'info', 'stopped leading', { term: leadership.term });
  }
  if (leads && context.leadership === undefined) {
    context.leadership = {
      term,
      ready: undefined,
      served: new Map(),
      pending: new Map(),
      rounds: [],
      clock: createClock(),
      timedOnTheWay: 0,
      voidsWanted: [],
      waiting: [],
      waits: createWaits(),
      cooling: new Map(),
      coolingDue: createDueList(),
      coolingFound: undefined,
      endHoldProposed: false,
    };
    log(context, 'info', 'elected leader', { term });
  }
}

/** The own no-op is applied: every Expire of earlier terms is decided, and each lease gets its time from here. */
export function becomeReady(context: Context, leadership: Leadership): void {
  assert(leadership.ready === undefined, `term ${leadership.term} is ready twice`);
  const { nowMs } = context.time;
  leadership.ready = { since: nowMs };
  takeOver(leadership.clock, liveLeases(context.lease), nowMs);
  takeOverWaits(context, leadership);
  takeOverCoolDowns(context, leadership);
  serveWaiting(context, leadership);
}

/** What the passing of time makes a leader propose. Called after all waiting input is handled. */
export function leaderTick(context: Context, leadership: Leadership): void {
  const { ready, clock } = leadership;
  if (ready === undefined) return;
  const { nowMs } = context.time;
  timeFound(clock, context.options.timedPerTick);
  // No faster than they are applied, or calls would wait behind all leases that are due together.
  const limit = Math.max(0, MAX_DUE_A_TICK - leadership.timedOnTheWay);
  const due = takeDue(clock, nowMs, limit, (timed) => isFlagged(context, timed));
  proposeExpire(context, leadership, due.expire);
  proposeCheckpoints(context, leadership, due.checkpoint);
  if (context.lease.holding && !leadership.endHoldProposed && nowMs - ready.since >= context.genesis.holdMs) {
    const resume = (): void => {
      if (!context.lease.holding) holdEnded(context, leadership);
    };
    const command = { type: 'endHold', term: leadership.term } as const;
    leadership.endHoldProposed = proposeInternal(context, leadership, command, { resume }) !== undefined;
  }
  scanWaits(context, leadership);
  scanCoolDowns(context, leadership);
  watchHeadroom(context);
}

function proposeExpire(context: Context, leadership: Leadership, due: readonly Timed[]): void {
  const { clock } = leadership;
  const parts = freeingBatches(
    context,
    leadership,
    due,
    ({ domain }) => domain,
    ({ domain }) => 24 + domain.length,
  );
  for (const part of parts) {
    const batch = part.map(({ item }) => item);
    const leases = part.map(({ item: { domain, token }, detached }) => {
      const lease = leaseOf(context.lease, domain);
      assert(lease?.token === token, `timed lease ${domain} is not the live one`);
      return { domain, token, version: lease.version, detached };
    });
    const atUnixMs = context.time.unixMs;
    const command = { type: 'expire', term: leadership.term, leases, atUnixMs } as const;
    const resume = (): void => {
      // Those that ended were taken from the clock when the entry was applied; what is left was decided otherwise.
      for (const timed of batch) {
        if (timed.live && timed.expiring !== undefined) {
          for (const each of expireIgnored(clock, timed, context.time.nowMs)) each();
        }
      }
    };
    const frees = part.map(({ name }) => name);
    const index = proposeInternal(context, leadership, command, { resume, frees });
    if (index !== undefined) leadership.timedOnTheWay += batch.length;
    for (const timed of batch) {
      if (index === undefined) enqueue(clock, timed, context.time.nowMs + RETRY_MS);
      else timed.expiring = [];
    }
  }
}

function proposeCheckpoints(context: Context, leadership: Leadership, due: readonly Timed[]): void {
  const { nowMs } = context.time;
  for (const batch of batches(due, ({ domain }) => 24 + domain.length)) {
    const leases = batch.map(({ domain, token, deadline }) => ({
      domain,
      token,
      leftMs: Math.max(0, Math.ceil(deadline - nowMs)),
    }));
    const index = proposeInternal(context, leadership, { type: 'checkpoint', leases }, { exempt: false });
    if (index !== undefined) leadership.timedOnTheWay += batch.length;
    for (const timed of batch) {
      if (index !== undefined) timed.checkpointIndex = index;
      enqueue(leadership.clock, timed, index === undefined ? nowMs + RETRY_MS : timed.deadline);
    }
  }
}

/**
 * Warns when a history formed again now might begin below the next revision (F2). A young history is close to the clock
 * by nature: what counts is that it used up more than half of the time since its base, or that its base is ahead.
 */
function watchHeadroom(context: Context): void {
  const { history } = context.genesis;
  const nowUs = context.time.unixMs * 1_000;
  const headroomUs = nowUs - revisionAt(history, lastIndex(context.raft));
  if (headroomUs >= MIN_REVISION_HEADROOM_US || headroomUs >= (nowUs - history.base) / 2) {
    context.alarms.delete('headroom');
    return;
  }
  const known = context.alarms.has('headroom');
  const seconds = Math.floor(Math.abs(headroomUs) / 1_000_000);
  const text =
    `the next revision is ${headroomUs < 0 ? `${seconds} s ahead of` : `only ${seconds} s behind`} the wall clock ` +
    '(a floor, a fast clock at forming, or a clock that is behind now): forming or restoring this cluster again needs --floor';
  context.alarms.set('headroom', text);
  if (!known) log(context, 'warn', text);
}
