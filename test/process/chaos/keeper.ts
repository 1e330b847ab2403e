/**
 * A client with many leases that nobody else wants: takes a new one all the time, so that something has always just been
 * acknowledged when a node dies, and renews all in one call, which shows whether any is lost.
 */
import { randomUUID } from 'node:crypto';
import { setTimeout as pause } from 'node:timers/promises';
import type { AcquireCall, LeaseRef } from '../../../src/base/api.js';
import type { Domain, RequestId } from '../../../src/base/ids.js';
import { nextInt } from '../../../src/base/random.js';
import { now } from './clock.js';
import type { CallPorts } from './noted-calls.js';
import { NotedCalls } from './noted-calls.js';
import { epochAt } from './orders.js';
import { PLAIN } from '../../support/answers.js';

const NEXT_MS = 100;
const RENEW_MS = 1_200;
/** A lease is kept so long; then it is given back, or forgotten and ends by time. */
const KEEP_MS = 3_000;
const TTL_MS = 3_500;
/** While nothing is answered, no more than so many are asked for. */
const MAX_OPEN = 30;

/** See the head of the file. */
export class Keeper {
  readonly #ports: CallPorts;
  readonly #calls: NotedCalls;
  readonly #kept = new Map<LeaseRef, number>();
  readonly #open = new Set<Promise<unknown>>();

  constructor(ports: CallPorts) {
    this.#ports = ports;
    this.#calls = new NotedCalls(ports);
  }

  /** Goes on until it is stopped. */
  async run(): Promise<void> {
    let renewAt = now() + RENEW_MS;
    for (let turn = 0; !this.#ports.stopped(); turn++) {
      if (this.#open.size < MAX_OPEN) this.#begin(this.#take(turn));
      if (now() >= renewAt && this.#kept.size > 0) {
        renewAt = now() + RENEW_MS;
        this.#begin(this.#calls.repeat({ type: 'renew', leases: [...this.#kept.keys()] }));
      }
      for (const [lease, since] of this.#kept) {
        if (now() < since + KEEP_MS) continue;
        this.#kept.delete(lease);
        if (nextInt(this.#ports.random, 0, 1) === 0) this.#begin(this.#calls.repeat({ type: 'release', lease }));
      }
      await pause(NEXT_MS);
    }
    await Promise.all(this.#open);
  }

  async #take(turn: number): Promise<void> {
    const requestId = randomUUID() as RequestId;
    const call: AcquireCall = {
      type: 'acquire',
      domain: `kept/${epochAt(now())}/${this.#ports.name}/${turn}` as Domain,
      requestId,
      holder: `${this.#ports.name} ${requestId}`,
      ttlMs: TTL_MS,
      metadata: [],
      ...PLAIN,
      seenRevision: this.#calls.seenRevision,
    };
    const answer = await this.#calls.repeat(call);
    if (answer?.type !== 'acquire' || answer.outcome.type !== 'granted') return;
    const { domain, token } = answer.outcome.lease;
    this.#kept.set({ domain, token }, now());
  }

  #begin(work: Promise<unknown>): void {
    const tracked: Promise<unknown> = work.finally(() => {
      this.#open.delete(tracked);
    });
    this.#open.add(tracked);
  }
}
