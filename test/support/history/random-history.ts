/**
 * Random histories that hold: the production state machine applies one entry after another, each at its moment of one
 * clock, and every call is sent before and answered after the moment at which it takes effect.
 */
import type { Answer, LeaseRef } from '../../../src/base/api.js';
import type { Domain, RequestId } from '../../../src/base/ids.js';
import { createRandom, nextInt } from '../../../src/base/random.js';
import type { Random } from '../../../src/base/random.js';
import type { History, Revision } from '../../../src/base/revision.js';
import { ZERO_REVISION } from '../../../src/base/revision.js';
import { apply } from '../../../src/lease/apply.js';
import { leaseOf } from '../../../src/lease/lookup.js';
import { createState } from '../../../src/lease/load.js';
import type { State } from '../../../src/lease/state.js';
import type { Command } from '../../../src/lease/commands.js';
import type { Result } from '../../../src/lease/types.js';
import { leaseState, leaseView } from '../../../src/replica/views.js';
import type { JudgedCall, Operation, Outcome } from './operations.js';
import { STATE_LIMITS } from '../../../src/base/limits.js';
import { domainAnswer, notGranted, PLAIN } from '../answers.js';

const BASE = 1_000_000 as Revision;
const HISTORY: History = { base: BASE, start: 0 };
/** Nobody waits in these histories. */
const ENDING = { detached: [], atUnixMs: 0 } as const;

/** What kind of history. */
export interface Shape {
  readonly operations: number;
  readonly domains: number;
  /** The greatest time between two moments, in milliseconds; TTLs are 1–3 s. */
  readonly gapMs: number;
  /** The greatest time from sending to effect and from effect to answer. */
  readonly delayMs: number;
  /** Of 100 calls, how many lose their answer. */
  readonly lostPercent: number;
  /** How many finished requests the state remembers. */
  readonly keep: number;
  /** After how much of its TTL a lease that is not renewed ends. 1.01 is right; below 0.97 no history holds for long. */
  readonly expiry: number;
}

/** A history and, for the judge's facts, what its log granted. */
export interface Made {
  readonly operations: readonly Operation[];
  readonly granted: ReadonlyMap<RequestId, Revision>;
}

/** The history with this seed. */
export function randomHistory(seed: number, shape: Shape): Made {
  const world = new World(createRandom(seed), shape);
  for (let i = 0; i < shape.operations; i++) world.call();
  return { operations: world.operations, granted: world.granted };
}

interface Known {
  readonly domain: Domain;
  readonly requestId: RequestId;
  readonly seenRevision: Revision;
  readonly ttlMs: number;
}

class World {
  readonly operations: Operation[] = [];
  readonly granted = new Map<RequestId, Revision>();
  readonly #random: Random;
  readonly #shape: Shape;
  readonly #state: State;
  readonly #requests: Known[] = [];
  readonly #leases: LeaseRef[] = [];
  /** When the leader ends it, by token. */
  readonly #deadlines = new Map<Revision, number>();
  #now = 0;

  constructor(random: Random, shape: Shape) {
    this.#random = random;
    this.#shape = shape;
    const summary = {
      forgotten: ZERO_REVISION,
      holding: false,
      limits: { ...STATE_LIMITS, finishedRequests: shape.keep },
    };
    this.#state = createState(summary, HISTORY, BASE, []);
  }

  /** Time goes on, leases expire, and one call takes effect. */
  call(): void {
    this.#now += this.#upTo(this.#shape.gapMs);
    this.#expire();
    const call = this.#draw();
    // What an operator asks for is not passed on again.
    const twice = this.#upTo(20) === 0 && call.type !== 'forceRelease';
    const invokedAt = this.#now - this.#upTo(this.#shape.delayMs);
    const fate = this.#upTo(99);
    const lost = fate < this.#shape.lostPercent;
    // Of those that are lost some never took effect.
    if (lost && fate % 3 === 0) {
      this.#record(call, invokedAt, { type: fate % 2 === 0 ? 'unknown' : 'not-done' });
      return;
    }
    let outcome = this.#answer(call);
    if (twice) {
      // Passed on to a second leader after the first had taken it: the answer is what that one finds.
      this.#now += this.#upTo(this.#shape.delayMs);
      this.#expire();
      outcome = this.#answer(call);
    }
    this.#record(call, lost ? invokedAt - this.#upTo(3_000) : invokedAt, lost ? { type: 'unknown' } : outcome);
  }

  #record(call: JudgedCall, invokedAt: number, outcome: Outcome): void {
    const returnedAt = outcome.type === 'answer' ? this.#now + this.#upTo(this.#shape.delayMs) : undefined;
    this.operations.push({ client: `c${this.#upTo(9)}`, call, invokedAt, returnedAt, outcome });
  }

  #draw(): JudgedCall {
    const kind = this.#upTo(99);
    const domain = `d${this.#upTo(this.#shape.domains - 1)}` as Domain;
    const lease = this.#pick(this.#leases);
    if (kind < 30 || lease === undefined) return this.#acquire(domain, kind % 3 === 0);
    const freshness = kind % 8 === 0 ? 'local' : 'linearizable';
    if (kind < 50) return { type: 'renew', leases: [lease] };
    if (kind < 65) return { type: 'release', lease };
    if (kind < 72) return this.#withdraw(domain);
    if (kind < 74) return { type: 'forceRelease', ...lease, note: 'note' };
    return kind < 84 ? { type: 'verify', lease, freshness } : { type: 'get', domain, freshness };
  }

  #acquire(domain: Domain, again: boolean): JudgedCall {
    let known = again ? this.#pick(this.#requests) : undefined;
    if (known === undefined) {
      known = {
        domain,
        requestId: this.#newId(),
        seenRevision: this.#state.revision,
        ttlMs: 1_000 * (1 + this.#upTo(2)),
      };
      this.#requests.push(known);
    }
    // Every request has a holder of its own.
    return { type: 'acquire', ...known, holder: `of ${known.requestId}`, metadata: [], ...PLAIN };
  }

  #withdraw(domain: Domain): JudgedCall {
    const known = this.#upTo(4) === 0 ? undefined : this.#pick(this.#requests);
    return { type: 'withdraw', domain: known?.domain ?? domain, requestId: known?.requestId ?? this.#newId() };
  }

  #newId(): RequestId {
    return `r${this.#requests.length}-${this.#upTo(1_000_000)}` as RequestId;
  }

  #answer(call: JudgedCall): Outcome {
    const answer = this.#answerTo(call);
    if (answer === undefined) return { type: 'unknown' };
    return { type: 'answer', answer, revision: this.#state.revision };
  }

  /** Undefined for an error. */
  #answerTo(call: JudgedCall): Answer | undefined {
    switch (call.type) {
      case 'renew':
        for (const lease of call.leases) this.#confirm(lease.domain, lease.token);
        return { type: 'renew', results: call.leases.map((lease) => leaseState(this.#state, lease)) };
      case 'verify':
        return { type: 'verify', outcome: leaseState(this.#state, call.lease) };
      case 'get': {
        const lease = leaseOf(this.#state, call.domain);
        return domainAnswer(call.domain, lease && leaseView(lease));
      }
      case 'acquire':
        return this.#acquired(call, this.#apply({ ...call, atUnixMs: this.#now, owner: '', principal: 'p' }));
      case 'release':
      case 'withdraw':
      case 'forceRelease':
        return answerOf(this.#apply(commandOf(call)));
    }
  }

  #acquired(call: Extract<JudgedCall, { type: 'acquire' }>, result: Result): Answer | undefined {
    if (result.type === 'granted') {
      const { token } = result.lease;
      if (!this.granted.has(call.requestId)) this.#leases.push({ domain: call.domain, token });
      this.granted.set(call.requestId, token);
      this.#confirm(call.domain, token);
      const outcome = { type: 'granted', lease: leaseView(result.lease) } as const;
      return { type: 'acquire', requestId: call.requestId, outcome };
    }
    if (result.type === 'notGranted') {
      const current = result.current && leaseView(result.current);
      return { type: 'acquire', requestId: call.requestId, outcome: notGranted(result.reason, current) };
    }
    if (result.type !== 'ended') return undefined;
    return { type: 'acquire', requestId: call.requestId, outcome: { type: 'ended', ended: result.ended } };
  }

  #apply(command: Command): Result {
    return apply(this.#state, { revision: (this.#state.revision + 1) as Revision, term: 1 }, command).result;
  }

  #confirm(domain: Domain, token: Revision): void {
    const lease = leaseOf(this.#state, domain);
    if (lease?.token === token) this.#deadlines.set(token, this.#now + lease.ttlMs * this.#shape.expiry);
  }

  #expire(): void {
    for (const { domain, token, version } of this.#state.leases.values()) {
      if ((this.#deadlines.get(token) ?? 0) > this.#now) continue;
      this.#apply({ type: 'expire', term: 1, leases: [{ domain, token, version, detached: [] }], atUnixMs: 0 });
    }
  }

  #upTo(greatest: number): number {
    return nextInt(this.#random, 0, greatest);
  }

  /** Mostly one of the newest. */
  #pick<T>(list: readonly T[]): T | undefined {
    const back = this.#upTo(3) === 0 ? this.#upTo(30) : this.#upTo(2);
    return list[Math.max(0, list.length - 1 - back)];
  }
}

type Ending = Extract<JudgedCall, { type: 'release' | 'withdraw' | 'forceRelease' }>;

function commandOf(call: Ending): Command {
  if (call.type === 'release') return { type: 'release', ...call.lease, ...ENDING, owner: '' };
  if (call.type === 'withdraw') return { ...call, ...ENDING, owner: '' };
  return { ...call, ...ENDING, by: 'operator' };
}

function answerOf(result: Result): Answer | undefined {
  if (result.type === 'released') {
    return { type: 'release', released: result.released, ended: result.released ? undefined : result.ended };
  }
  if (result.type === 'forceReleased') {
    return { type: 'forceRelease', released: result.released, currentToken: result.currentToken };
  }
  return result.type === 'withdrawn' ? { type: 'withdraw' } : undefined;
}
