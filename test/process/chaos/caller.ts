/**
 * A client without the library: stock gRPC calls, repeated under the same request id and sent twice at once, to any node.
 * Every call is noted, so that the whole history of its domains is known.
 */
import { randomUUID } from 'node:crypto';
import { setTimeout as pause } from 'node:timers/promises';
import type { AcquireCall, Answer, LeaseRef } from '../../../src/base/api.js';
import type { Domain, RequestId } from '../../../src/base/ids.js';
import { nextInt } from '../../../src/base/random.js';
import { now } from './clock.js';
import type { CallPorts } from './noted-calls.js';
import { NotedCalls } from './noted-calls.js';
import { epochAt } from './orders.js';
import { PLAIN } from '../../support/answers.js';

/** So many domains are fought for at a time. */
const DOMAINS = 6;
/** See the head of the file. */
export class Caller {
  readonly #ports: CallPorts;
  readonly #calls: NotedCalls;

  constructor(ports: CallPorts) {
    this.#ports = ports;
    this.#calls = new NotedCalls(ports);
  }

  /** Goes on until it is stopped. */
  async run(): Promise<void> {
    while (!this.#ports.stopped()) {
      await this.#tenure();
      await pause(this.#any(10, 300));
    }
  }

  async #tenure(): Promise<void> {
    const requestId = randomUUID() as RequestId;
    const call: AcquireCall = {
      type: 'acquire',
      domain: `called/${epochAt(now())}/${this.#any(1, DOMAINS)}` as Domain,
      requestId,
      // Answers name a lease's holder and never its request id: so it is told apart by that.
      holder: `${this.#ports.name} ${requestId}`,
      ttlMs: this.#any(3_000, 4_000),
      metadata: [],
      ...PLAIN,
      seenRevision: this.#calls.seenRevision,
    };
    const { domain } = call;
    const lease = grantedIn(await this.#calls.repeat(call));
    if (lease === undefined) {
      if (this.#any(0, 1) === 0) await this.#calls.send({ type: 'get', domain, freshness: 'linearizable' });
      else await this.#calls.repeat({ type: 'withdraw', domain, requestId });
      return;
    }
    for (let steps = this.#any(0, 8); steps > 0 && !this.#ports.stopped(); steps--) {
      await pause(this.#any(20, 700));
      if (!(await this.#use(call, lease))) return;
    }
    const end = this.#any(0, 9);
    if (end < 8) await this.#calls.repeat({ type: 'release', lease });
    else if (end === 8) await this.#calls.repeat({ type: 'withdraw', domain, requestId });
    // Else it walks away, and the lease ends by time.
    if (this.#any(0, 2) === 0) await this.#calls.repeat(call);
  }

  /** False when the lease is over. */
  async #use(call: AcquireCall, lease: LeaseRef): Promise<boolean> {
    switch (this.#any(0, 5)) {
      case 0:
        await this.#calls.send({ type: 'get', domain: lease.domain, freshness: 'linearizable' });
        return true;
      case 1:
        return saysLive(await this.#calls.send({ type: 'verify', lease, freshness: 'linearizable' }));
      case 2:
        return saysLive(await this.#calls.repeat(call));
      default:
        return saysLive(await this.#calls.repeat({ type: 'renew', leases: [lease] }));
    }
  }

  #any(low: number, high: number): number {
    return nextInt(this.#ports.random, low, high);
  }
}

function grantedIn(answer: Answer | undefined): LeaseRef | undefined {
  if (answer?.type !== 'acquire' || answer.outcome.type !== 'granted') return undefined;
  const { domain, token } = answer.outcome.lease;
  return { domain, token };
}

/** Without an answer the lease may live. */
function saysLive(answer: Answer | undefined): boolean {
  if (answer?.type === 'renew') return answer.results[0]?.type === 'live';
  if (answer?.type === 'verify') return answer.outcome.type === 'live';
  if (answer?.type === 'acquire') return answer.outcome.type === 'granted';
  return true;
}
