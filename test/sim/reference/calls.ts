/** The calls that a process has taken and not answered, and what they have been through. */
import type { Call } from '../../../src/base/api.js';
import { ANSWER_BEFORE_DEADLINE_MS, MAX_HOLD_MS } from '../../../src/base/limits.js';
import type { Command } from '../../../src/lease/commands.js';
import type { ChangeableLimits } from '../../../src/lease/types.js';
import type { CallResult, Effect, Event, Principal } from '../../../src/replica/types.js';
import type { Outcome } from './lease-model.js';

/** A call until its answer. */
export interface OpenCall {
  /** '' for a client of this node, else the node that passed it on. */
  readonly from: string;
  readonly id: number;
  readonly principal: Principal;
  readonly call: Call;
  readonly arrivedAt: number;
  readonly timeoutMs: number;
  /** Until when an acquire that is queued may be held. */
  readonly holdUntil: number;
  /** End of the log when it arrived, or a little before. */
  readonly arrivalIndex: number;
  /** The seen revision that it has to carry from here on; undefined where it has none. */
  readonly seen: number | undefined;
  /** Another call had its number when it came: which of the two an answer is for is not known. */
  readonly twin: boolean;
  /** Step and end of the log since it could first be served: entries and rounds of before confirm nothing for it. */
  since: { step: number; index: number };
  /** Leases that were flagged when it came: `domain token`. */
  readonly flagged: Set<string>;
  /** The leadership for which another node passed it on; undefined for a client's call here. */
  readonly meantFor: number | undefined;
  forwardedTo: string | undefined;
  /** It was passed on in a step in which the way there broke: in which order is not known, so it may be back here. */
  doubtful: boolean;
  /** An attempt elsewhere is over and may have reached a log. */
  attempted: boolean;
  /** What came back for it from the node that it was passed to. */
  passed: CallResult | undefined;
  /** Answered, or given up: gone after this step. */
  over: boolean;
  answered: boolean;
}

/** An entry of this leader that was applied. */
export interface Decided {
  readonly index: number;
  readonly term: number;
  readonly outcome: Outcome;
}

type Taken = Extract<Event, { readonly type: 'call' | 'forwarded' }>;

/** Everything that an entry of a call is known by; undefined for calls that need none. */
export function subjectOf(call: Call | Command): string | undefined {
  switch (call.type) {
    case 'acquire':
    case 'withdraw':
      return `${call.type} ${call.requestId}`;
    case 'release':
      return 'lease' in call
        ? `release ${call.lease.domain} ${call.lease.token}`
        : `release ${call.domain} ${call.token}`;
    case 'forceRelease':
      return `forceRelease ${call.domain} ${call.token}`;
    case 'limits':
      return limitsSubject(call.change);
    case 'changeLimits': {
      const { queueLimit: queue, prefixQuotas: prefixes, ...same } = call.change;
      return limitsSubject({ queue, prefixes, ...same });
    }
    case 'renew':
    case 'verify':
    case 'get':
    case 'list':
    case 'transferLeadership':
    case 'getStatus':
    case 'getStateHash':
    case 'expire':
    case 'endWait':
    case 'endCoolDown':
    case 'checkpoint':
    case 'void':
    case 'endHold':
      return undefined;
  }
}

/** A change of limits has no name but what it changes. */
function limitsSubject(change: { readonly [K in keyof ChangeableLimits]?: ChangeableLimits[K] | undefined }): string {
  const { queue, leasesPerPrincipal, waitersPerPrincipal, prefixes } = change;
  return `limits ${JSON.stringify([queue, leasesPerPrincipal, waitersPerPrincipal, prefixes])}`;
}

/** Counted at the node that took it: half its TTL, 20 s, and until shortly before its deadline (design 8). */
function holdUntil(event: Taken, now: number): number {
  const { call, timeoutMs } = event;
  if (event.type === 'forwarded') return now + event.holdMs;
  if (call.type !== 'acquire') return now;
  return now + Math.min(call.ttlMs / 2, MAX_HOLD_MS, timeoutMs - Math.min(ANSWER_BEFORE_DEADLINE_MS, timeoutMs / 4));
}

/** See the head of the file. */
export class Calls {
  /** By where they came from. More than one only where a node's number is used again. */
  readonly open = new Map<string, OpenCall[]>();
  /** Entries of this leader by subject, while a call of that subject is open. */
  readonly decided = new Map<string, Decided[]>();
  /** How many calls of each subject ever came. */
  readonly taken = new Map<string, number>();
  /** When each request id first came here. */
  readonly firstSeen = new Map<string, number>();
  readonly #over: OpenCall[] = [];
  /** Nodes to which the way broke in the step under way. */
  readonly #lost = new Set<string>();

  take(event: Taken, arrivedAt: number, step: number, index: number, seen: number | undefined): OpenCall {
    const from = event.type === 'call' ? '' : event.from;
    const { id, principal, call, timeoutMs } = event;
    const key = `${from}/${id}`;
    const known = this.open.get(key);
    const taken: OpenCall = {
      from,
      id,
      principal,
      call,
      arrivedAt,
      timeoutMs,
      holdUntil: holdUntil(event, arrivedAt),
      arrivalIndex: index,
      seen,
      twin: known !== undefined,
      since: { step, index },
      flagged: new Set(),
      meantFor: event.type === 'forwarded' ? event.term : undefined,
      forwardedTo: undefined,
      doubtful: false,
      attempted: false,
      passed: undefined,
      over: false,
      answered: false,
    };
    const subject = subjectOf(call);
    if (subject !== undefined) this.taken.set(subject, (this.taken.get(subject) ?? 0) + 1);
    if (known === undefined) this.open.set(key, [taken]);
    else known.push(taken);
    if (call.type === 'acquire' && !this.firstSeen.has(call.requestId)) this.firstSeen.set(call.requestId, arrivedAt);
    return taken;
  }

  find(from: string, id: number): readonly OpenCall[] {
    return this.open.get(`${from}/${id}`) ?? [];
  }

  /** The node that passed it on does not wait for it. The end of a hand-over is told all the same: it outlives a leadership. */
  dropped(call: OpenCall): void {
    if (call.call.type !== 'transferLeadership') this.end(call);
  }

  /** Nothing more may come for it after this step. */
  end(call: OpenCall): void {
    if (call.over) return;
    call.over = true;
    this.#over.push(call);
  }

  *all(): Iterable<OpenCall> {
    for (const calls of this.open.values()) yield* calls;
  }

  /** The step is over: what was ended in it is gone. */
  settle(): void {
    this.#lost.clear();
    if (this.#over.length === 0) return;
    for (const call of this.#over.splice(0)) {
      const key = `${call.from}/${call.id}`;
      const left = (this.open.get(key) ?? []).filter((each) => each !== call);
      if (left.length === 0) this.open.delete(key);
      else this.open.set(key, left);
    }
    if (this.decided.size === 0) return;
    const subjects = new Set<string | undefined>();
    for (const { call } of this.all()) subjects.add(subjectOf(call));
    for (const subject of this.decided.keys()) if (!subjects.has(subject)) this.decided.delete(subject);
  }

  /** What came back, or was lost, of calls that were passed on. */
  returned(from: string, id: number, result: CallResult): void {
    for (const call of this.find('', id)) {
      if (call.forwardedTo !== from) continue;
      call.forwardedTo = undefined;
      if (result.type !== 'notLeader') call.passed = result;
      else if (result.outcome === 'unknown') call.attempted = true;
    }
  }

  lost(node: string): void {
    this.#lost.add(node);
    for (const call of this.all()) {
      if (call.forwardedTo !== node) continue;
      call.forwardedTo = undefined;
      call.attempted = true;
    }
  }

  /** A call leaves for `effect.to`: only an own one, to the leader, unchanged but for its stamp. */
  forwarded(
    effect: Extract<Effect, { readonly type: 'forward' }>,
    leaders: readonly string[],
    nowMs: number,
    fail: (text: string) => void,
  ): void {
    const [call] = this.find('', effect.id);
    // One that was given up later in the step left before.
    if (call === undefined) {
      fail(`passes on call ${effect.id}, which no client of it waits for`);
      return;
    }
    if (call.forwardedTo !== undefined) {
      if (!call.doubtful) fail(`passes call ${effect.id} to two nodes`);
      call.attempted = true;
    }
    if (!leaders.includes(effect.to)) fail(`passes call ${effect.id} to ${effect.to}, which does not lead`);
    if (effect.call.type === 'acquire') {
      if (effect.call.seenRevision !== call.seen) {
        fail(`passes call ${effect.id} on with seen revision ${effect.call.seenRevision}, not ${call.seen ?? 'none'}`);
      }
    } else if (effect.call !== call.call) fail(`passes call ${effect.id} on with other contents`);
    if (effect.principal !== call.principal) fail(`passes call ${effect.id} on for another principal`);
    if (effect.timeoutMs > Math.max(1, call.arrivedAt + call.timeoutMs - nowMs + 1e-6)) {
      fail(`passes call ${effect.id} on with ${effect.timeoutMs} ms, more than it has left`);
    }
    if (effect.holdMs > Math.max(0, call.holdUntil - nowMs) + 1e-6) {
      fail(`passes call ${effect.id} on to be held for ${effect.holdMs} ms, longer than it may`);
    }
    call.forwardedTo = effect.to;
    call.passed = undefined;
    call.doubtful = this.#lost.has(effect.to);
  }

  /** Looked at every 20 ms: a call is answered before its deadline. */
  checkDeadlines(nowMs: number, fail: (text: string) => void): void {
    for (const { from, id, over, arrivedAt, timeoutMs, call } of this.all()) {
      if (from !== '' || over) continue;
      const marginMs = Math.min(ANSWER_BEFORE_DEADLINE_MS, timeoutMs / 4);
      // A leader may hold an acquire until then: its answer has to come back.
      const answerBy = arrivedAt + timeoutMs - (call.type === 'acquire' ? 0.6 : 1) * marginMs;
      if (nowMs - answerBy >= 20) fail(`has not answered call ${id}, due ${nowMs - answerBy} ms ago`);
    }
  }
}
