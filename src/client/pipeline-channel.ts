/**
 * The {@link Channel} with one stream for many calls: those of one turn of the event loop leave as one message. Calls that
 * a pipeline does not carry go as plain calls over the same connection, and all of them when the node knows no pipeline.
 */
import { status } from '@grpc/grpc-js';
import type { StatusObject } from '@grpc/grpc-js';
import type { Call } from '../base/api.js';
import { PIPELINE_CALLS } from '../wire/public-pipeline-messages.js';
import type { PipelineCall } from '../wire/public-pipeline-messages.js';
import type { Channel, Reply } from './channel.js';
import { replyFor, sendUnary } from './grpc-channel.js';
import { GrpcConnection } from './grpc-connection.js';
import { PipelineStream } from './pipeline-stream.js';
import type { OpenOperation } from './pipeline-stream.js';

/** A node that knows no pipeline is asked again for one after this, in milliseconds: it may have been replaced. */
const UNARY_MS = 60_000;

/** Opens the channel to `endpoint`, `host:port`. Connects with the first call. */
export function openPipelineChannel(endpoint: string): Channel {
  return new PipelineChannel(endpoint);
}

class PipelineChannel implements Channel {
  readonly #connection: GrpcConnection;
  #stream: PipelineStream | undefined;
  #unaryUntil = -Infinity;

  constructor(endpoint: string) {
    this.#connection = new GrpcConnection(endpoint);
  }

  send(call: Call, timeoutMs: number, done: (reply: Reply) => void): () => boolean {
    if (!isPipelined(call) || performance.now() < this.#unaryUntil) {
      return sendUnary(this.#connection, call, timeoutMs, done);
    }
    if (this.#stream?.usable !== true) this.#stream = this.#begin();
    return this.#stream.send(call, timeoutMs, done);
  }

  close(): void {
    // grpc-js lets a stream go on when its client is closed.
    this.#stream?.abort({ type: 'silent', reached: true, why: 'the client was closed' });
    this.#connection.close();
  }

  #begin(): PipelineStream {
    const client = this.#connection.client();
    const stream = new PipelineStream(client, {
      ended: (end, open) => {
        unwatch();
        if (end.code === status.UNIMPLEMENTED && end.metadata.get('fencepost-reason').length === 0) this.#goUnary(open);
        else this.#fail(end, open, this.#connection.wasReady(client));
      },
      mayHaveLeft: () => this.#connection.wasReady(client),
      deserted: () => {
        if (this.#connection.dropUnlessReady(client))
          stream.abort({ type: 'silent', reached: false, why: 'no connection' });
      },
    });
    const unwatch = this.#connection.watch(client, (silent) => {
      stream.abort(silent);
    });
    return stream;
  }

  /** Nothing of it was done: the node knows no such method. */
  #goUnary(open: readonly OpenOperation[]): void {
    this.#unaryUntil = performance.now() + UNARY_MS;
    for (const operation of open) {
      operation.instead((call, timeoutMs, done) => sendUnary(this.#connection, call, timeoutMs, done));
    }
  }

  #fail(end: StatusObject, open: readonly OpenOperation[], connected: boolean): void {
    for (const { done, sent } of open) {
      const reply = replyFor(end, connected, 0);
      // What was still here is not done, whatever became of the stream.
      done(reply.type === 'silent' && !sent ? { ...reply, reached: false } : reply);
    }
  }
}

function isPipelined(call: Call): call is PipelineCall {
  return (PIPELINE_CALLS as readonly string[]).includes(call.type);
}
