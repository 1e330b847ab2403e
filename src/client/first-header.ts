/**
 * The header that a client reads before its first acquire, so that its first request ids, too, are made with a revision
 * that it has seen (design 9; F6). A hundred acquires of a fresh client share one read.
 */
import type { GetCall } from '../base/api.js';
import type { Domain } from '../base/ids.js';
import { ZERO_REVISION } from '../base/revision.js';
import type { FencepostError } from './errors.js';
import type { CallOutcome, OpenCall, Transport } from './transport.js';

/** A read under way, as one of those who wait for it sees it. */
export interface HeaderRead extends OpenCall<GetCall> {
  /** Another began it: its time may be over before that of this one. */
  readonly joined: boolean;
}

/** One for each client. */
export class FirstHeader {
  readonly #transport: Transport;
  #reading: Promise<CallOutcome<GetCall>> | undefined;

  constructor(transport: Transport) {
    this.#transport = transport;
  }

  /** Begins a read, or joins the one under way. A cancel ends it for this waiter only. */
  read(domain: Domain, timeoutMs: number): HeaderRead {
    const joined = this.#reading !== undefined;
    this.#reading ??= this.#transport
      .call({ type: 'get', domain, freshness: 'local' }, timeoutMs)
      .result.finally(() => (this.#reading = undefined));
    let cancel: (error: FencepostError) => void = () => undefined;
    const cancelled = new Promise<CallOutcome<GetCall>>((resolve) => {
      cancel = (error) => {
        resolve({ type: 'failed', error, revision: ZERO_REVISION });
      };
    });
    return { joined, result: Promise.race([this.#reading, cancelled]), cancel };
  }
}
