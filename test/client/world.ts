/**
 * The client's surroundings for tests: clocks that stand still until they are moved, timers that fire in order, and
 * endpoints in memory that a test scripts. No test of the client waits for a real clock, but for those over sockets.
 */
import type { Answer, Call, Header } from '../../src/base/api.js';
import { failure } from '../../src/base/errors.js';
import type { Reason } from '../../src/base/errors.js';
import { parseRequestId } from '../../src/base/ids.js';
import type { Domain, Incarnation, NodeId, RequestId } from '../../src/base/ids.js';
import type { Revision } from '../../src/base/revision.js';
import type { Channel, Reply } from '../../src/client/channel.js';
import type { Reading } from '../../src/client/clock.js';
import { createClient } from '../../src/client/client.js';
import type { Client } from '../../src/client/client.js';
import type { ConnectOptions } from '../../src/client/options.js';
import type { Surroundings } from '../../src/client/surroundings.js';
import { FakeWatches } from './watch-world.js';
import { domainAnswer, notGranted } from '../support/answers.js';

interface Timer {
  readonly atMs: number;
  readonly order: number;
  readonly fire: () => void;
}

/** Clocks and timers under the test's hand. */
export class FakeTime {
  reading: Reading = { monotonicMs: 1_000, uptimeMs: 500_000, wallMs: 1_796_000_000_000 };
  stepMs = 16;
  #timers: Timer[] = [];
  #order = 0;
  #ids = 0;
  /** What `random()` gives. */
  chance = 0;

  readonly surroundings: Surroundings = {
    clocks: { read: () => this.reading, uptimeStepMs: () => this.stepMs },
    timers: {
      set: (delayMs, fire) => {
        const timer = { atMs: this.reading.monotonicMs + Math.max(0, delayMs), order: this.#order++, fire };
        this.#timers.push(timer);
        return () => {
          this.#timers = this.#timers.filter((other) => other !== timer);
        };
      },
    },
    random: () => this.chance,
    newRequestId: () => requestId(++this.#ids),
  };

  /** Timers that are set. */
  get timers(): number {
    return this.#timers.length;
  }

  /** Moves the clocks without letting a timer fire: the process, or the machine, stands still meanwhile. */
  pause(by: Partial<Reading>): void {
    this.reading = {
      monotonicMs: this.reading.monotonicMs + (by.monotonicMs ?? 0),
      uptimeMs: this.reading.uptimeMs + (by.uptimeMs ?? 0),
      wallMs: this.reading.wallMs + (by.wallMs ?? 0),
    };
  }

  /** As {@link pause} with all clocks in step. */
  stall(ms: number): void {
    this.pause({ monotonicMs: ms, uptimeMs: ms, wallMs: ms });
  }

  /** Lets time go by, timer by timer, with everything that follows from each. */
  async run(ms: number): Promise<void> {
    const untilMs = this.reading.monotonicMs + ms;
    await settle();
    for (;;) {
      const next = this.#timers
        .filter((timer) => timer.atMs <= untilMs)
        .sort((a, b) => a.atMs - b.atMs || a.order - b.order)[0];
      if (next === undefined) break;
      this.#timers = this.#timers.filter((timer) => timer !== next);
      this.stall(Math.max(0, next.atMs - this.reading.monotonicMs));
      next.fire();
      await settle();
    }
    this.stall(Math.max(0, untilMs - this.reading.monotonicMs));
    await settle();
  }
}

/** Waits until every promise that can go on has gone on. */
export function settle(): Promise<void> {
  return new Promise((resolve) => {
    setImmediate(resolve);
  });
}

/** A call that arrived at an endpoint of {@link FakeNet}. */
export interface Arrived {
  readonly endpoint: string;
  readonly call: Call;
  readonly timeoutMs: number;
  /** Answers it; nothing happens when the client has given the call up. */
  readonly reply: (reply: Reply) => void;
}

/** Endpoints in memory. What arrives is answered by `answer`; undefined means silence until the test replies. */
export class FakeNet {
  readonly arrived: Arrived[] = [];
  readonly closed: string[] = [];
  answer: (arrived: Arrived) => Reply | undefined = () => undefined;

  readonly open = (endpoint: string): Channel => ({
    send: (call, timeoutMs, done) => {
      let open = true;
      const arrived: Arrived = {
        endpoint,
        call,
        timeoutMs,
        reply: (reply) => {
          if (!open) return;
          open = false;
          done(reply);
        },
      };
      this.arrived.push(arrived);
      const reply = this.answer(arrived);
      if (reply !== undefined) {
        queueMicrotask(() => {
          arrived.reply(reply);
        });
      }
      return () => {
        open = false;
        return true;
      };
    },
    close: () => {
      this.closed.push(endpoint);
    },
  });

  /** The calls of one kind that arrived so far. */
  of<T extends Call['type']>(type: T): (Arrived & { readonly call: Extract<Call, { readonly type: T }> })[] {
    return this.arrived.filter(
      (arrived): arrived is Arrived & { readonly call: Extract<Call, { readonly type: T }> } =>
        arrived.call.type === type,
    );
  }

  /** The newest call of a kind. */
  last<T extends Call['type']>(type: T): Arrived & { readonly call: Extract<Call, { readonly type: T }> } {
    const found = this.of(type).at(-1);
    if (found === undefined) throw new Error(`no ${type} arrived`);
    return found;
  }
}

export const INCARNATION = 'a'.repeat(32) as Incarnation;
export const OTHER_INCARNATION = 'b'.repeat(32) as Incarnation;
export const BASE = 1_796_000_000_000_000;

/** The nth request id. */
export function requestId(n: number): RequestId {
  const id = parseRequestId(`00000000-0000-4000-8000-${String(n).padStart(12, '0')}`);
  if (id === undefined) throw new Error('no UUID');
  return id;
}

/** A header of node `n1`, which leads, unless said otherwise. */
export function header(more: Partial<Header> = {}): Header {
  return {
    cluster: 'test',
    incarnation: INCARNATION,
    revision: (BASE + 7) as Revision,
    node: 'n1' as NodeId,
    leader: 'n1' as NodeId,
    ...more,
  };
}

/** An answer with a header. */
export function answered(answer: Answer, more: Partial<Header> = {}): Reply {
  return { type: 'answer', header: header(more), answer, version: '' };
}

/** An error from the table. */
export function refused(
  reason: Reason,
  more: { outcome?: 'not-done' | 'unknown'; revision?: number; retryDelayMs?: number } = {},
): Reply {
  const { retryDelayMs = 0, ...rest } = more;
  return { type: 'failure', failure: failure(reason, `said ${reason}`, rest), retryDelayMs };
}

/** The node may have got the call, and says nothing. */
export const SILENT: Reply = { type: 'silent', reached: true, why: 'the connection broke' };

/** No connection. */
export const REFUSED: Reply = { type: 'silent', reached: false, why: 'connection refused' };

/**
 * Answers like a cluster that grants everything: tokens count up, renewals are live, releases succeed.
 */
export function generous(): (arrived: { readonly call: Call }) => Reply {
  let token = BASE + 100;
  return ({ call }) => {
    switch (call.type) {
      case 'acquire':
        token++;
        return answered(granted(call.domain, call.requestId, token, call.ttlMs), { revision: token as Revision });
      case 'renew':
        return answered({ type: 'renew', results: call.leases.map(() => ({ type: 'live', ttlMs: 15_000 })) });
      case 'release':
        return answered({ type: 'release', released: true, ended: undefined });
      case 'withdraw':
        return answered({ type: 'withdraw' });
      case 'get':
        return answered(domainAnswer(call.domain));
      case 'verify':
      case 'list':
      case 'forceRelease':
      case 'transferLeadership':
      case 'changeLimits':
      case 'getStatus':
      case 'getStateHash':
        return refused('INTERNAL');
    }
  };
}

/** A granted answer. */
export function granted(domain: Domain, id: RequestId, token: number, ttlMs: number): Answer {
  return {
    type: 'acquire',
    requestId: id,
    outcome: {
      type: 'granted',
      lease: {
        domain,
        token: token as Revision,
        holder: 'tester',
        metadata: [],
        ttlMs,
        grantedAtUnixMs: 1_796_000_000_000,
      },
    },
  };
}

/** A held answer. */
export function held(id: RequestId): Answer {
  return { type: 'acquire', requestId: id, outcome: notGranted() };
}

/** A client over three endpoints in memory that grant everything. */
export function clientWorld(options: Partial<ConnectOptions> = {}): {
  time: FakeTime;
  net: FakeNet;
  watches: FakeWatches;
  client: Client;
} {
  const time = new FakeTime();
  const net = new FakeNet();
  const watches = new FakeWatches();
  net.answer = generous();
  const settings = { endpoints: ['a:1', 'b:1', 'c:1'], holder: 'tester', ...options };
  return { time, net, watches, client: createClient(settings, time.surroundings, net.open, watches.open) };
}

/** Lets time go by until the promise is settled. */
export async function within<T>(time: FakeTime, ms: number, promise: Promise<T>): Promise<T> {
  const settled = { yet: false };
  const end = (): void => {
    settled.yet = true;
  };
  promise.then(end, end);
  await settle();
  for (let passed = 0; passed < ms && !settled.yet; passed += 10) await time.run(10);
  if (!settled.yet) throw new Error(`not settled within ${ms} ms`);
  return promise;
}
