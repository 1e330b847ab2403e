/** Calls as a stock gRPC client makes them, to each node through its proxy. Retries nothing. */
import { Client, connectivityState, credentials, Metadata, status } from '@grpc/grpc-js';
import type { ServiceError } from '@grpc/grpc-js';
import type { Answer } from '../../../src/base/api.js';
import { ZERO_REVISION } from '../../../src/base/revision.js';
import type { Revision } from '../../../src/base/revision.js';
import type { PublicResponse } from '../../../src/wire/public-answer.js';
import { requestOf } from '../../../src/wire/public-request.js';
import { METHOD_OF } from '../../../src/wire/public.js';
import type { ClientCall } from './events.js';

/** How a call ended. */
export type StockReply =
  | { readonly type: 'answer'; readonly answer: Answer; readonly revision: Revision }
  | { readonly type: 'failed'; readonly outcome: 'not-done' | 'unknown'; readonly reason: string };

const OPTIONS = {
  'grpc.enable_retries': 0,
  'grpc.enable_http_proxy': 0,
  'grpc.use_local_subchannel_pool': 1,
  'grpc.initial_reconnect_backoff_ms': 100,
  'grpc.max_reconnect_backoff_ms': 500,
};

/** See the head of the file. */
export class StockChannels {
  /** The greatest revision that an answer showed. */
  seenRevision: Revision = ZERO_REVISION;
  readonly #endpoints: readonly string[];
  readonly #clients = new Map<string, Client>();

  constructor(endpoints: readonly string[]) {
    this.#endpoints = endpoints;
  }

  get size(): number {
    return this.#endpoints.length;
  }

  /** One call to the node at this place of the list. */
  send(at: number, call: ClientCall, timeoutMs: number): Promise<StockReply> {
    const endpoint = this.#endpoints[at % this.#endpoints.length] ?? '';
    const client = this.#clients.get(endpoint) ?? new Client(endpoint, credentials.createInsecure(), OPTIONS);
    this.#clients.set(endpoint, client);
    const { path, requestSerialize, responseDeserialize } = METHOD_OF[call.type];
    return new Promise((done) => {
      client.makeUnaryRequest(
        path,
        requestSerialize,
        responseDeserialize,
        requestOf(call),
        new Metadata(),
        { deadline: Date.now() + timeoutMs },
        (error: ServiceError | null, response?: PublicResponse) => {
          if (response !== undefined && error === null) {
            const revision = response.header?.revision ?? ZERO_REVISION;
            if (revision > this.seenRevision) this.seenRevision = revision;
            done({ type: 'answer', answer: response.answer, revision });
            return;
          }
          // A connect that never ends would keep this client for ever (grpc-node #2785).
          if (client.getChannel().getConnectivityState(false) !== connectivityState.READY) this.#drop(endpoint, client);
          done(failureOf(error));
        },
      );
    });
  }

  close(): void {
    for (const client of this.#clients.values()) client.close();
  }

  #drop(endpoint: string, client: Client): void {
    if (this.#clients.get(endpoint) === client) this.#clients.delete(endpoint);
    client.close();
  }
}

/** Without word from a node, only a refused argument would be certain; all else may have happened, or happen yet. */
function failureOf(error: ServiceError | null): StockReply {
  const text = (name: string): string => String(error?.metadata.get(name)[0] ?? '');
  return {
    type: 'failed',
    outcome: text('fencepost-outcome') === 'not-done' ? 'not-done' : 'unknown',
    reason: text('fencepost-reason') || (error === null ? 'no response' : status[error.code]),
  };
}
