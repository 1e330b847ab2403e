/** `LeaseService.Pipeline` of one node: its streams, each of them checked, fed and ended here. */
import { randomUUID } from 'node:crypto';
import type { ServerDuplexStream } from '@grpc/grpc-js';
import type { Header } from '../base/api.js';
import { assert } from '../base/assert.js';
import { failure } from '../base/errors.js';
import type { Failure } from '../base/errors.js';
import type { RequestId } from '../base/ids.js';
import type { CallResult, Principal } from '../replica/types.js';
import { parseRequest } from '../wire/public-parse.js';
import type { PipelineCall } from '../wire/public-pipeline-messages.js';
import { UnreadablePipeline } from '../wire/public-pipeline-read.js';
import type { PipelineOperation } from '../wire/public-pipeline-read.js';
import type { OperationOutcome } from '../wire/public-pipeline.js';
import { notFormed, unformedHeader } from './handler.js';
import type { HandlerContext } from './handler.js';
import { PipelineStream } from './pipeline-stream.js';
import type { StreamPorts } from './pipeline-stream.js';
import { Shares } from './pipeline-shares.js';
import { principalOf } from './principal.js';
import { endOf } from './status.js';

/** How often what waits in the streams is looked at, in milliseconds: about as long as an entry takes to be applied. */
const LOOK_MS = 2;

type RawStream = ServerDuplexStream<Buffer, Buffer>;

/** All streams of a node. */
export class Pipelines {
  readonly #context: HandlerContext;
  readonly #report: (error: unknown) => void;
  readonly #shares = new Shares();
  readonly #streams = new Set<PipelineStream>();
  /** From the newest answer: results that no replica gave come with it. */
  #header: Header;
  #timer: NodeJS.Timeout | undefined;
  #closing = false;

  /** `report` is told of unexpected errors. */
  constructor(context: HandlerContext, report: (error: unknown) => void) {
    this.#context = context;
    this.#report = report;
    this.#header = unformedHeader(context);
  }

  /** The handler of the method; never throws. */
  readonly handler = (raw: RawStream): void => {
    const stream = new PipelineStream(raw, this.#portsFor(principalOf(raw.getPeer())));
    const over = (): void => {
      stream.drop();
      this.#streams.delete(stream);
    };
    const refuse = (fault: Failure): void => {
      over();
      raw.emit('error', endOf(fault));
    };
    this.#streams.add(stream);
    raw.on('data', (bytes: Buffer) => {
      // What had arrived before the end was told to the client is not begun any more.
      if (!this.#streams.has(stream)) return;
      try {
        const fault = stream.receive(bytes);
        if (fault !== undefined) refuse(fault);
      } catch (error) {
        if (error instanceof UnreadablePipeline) {
          refuse(failure('INVALID_REQUEST', error.message));
          return;
        }
        this.#report(error);
        refuse(failure('INTERNAL', 'an unexpected error; the log of this node has it'));
      }
    });
    raw.on('drain', () => {
      stream.drained();
    });
    raw.on('end', () => {
      stream.finish();
    });
    // Comes with every ending that was not ours, and with ours when it did not reach the client.
    raw.on('cancelled', over);
    raw.on('close', over);
    raw.on('error', () => undefined);
    if (this.#closing) stream.finish();
  };

  /** The node is stopping: each stream ends with its last result, and takes no other way. */
  close(): void {
    this.#closing = true;
    for (const stream of this.#streams) stream.finish();
  }

  #portsFor(principal: Principal): StreamPorts {
    const { calls, isWaiting } = this.#context;
    return {
      shares: this.#shares,
      isWaiting,
      parse: (operation) => this.#parse(operation),
      open: (call, timeoutMs, answered) => {
        if (!calls.attached) return notFormed(this.#context);
        return calls.open(principal, timeoutMs, call, (header, result) => {
          // Runs inside the replica's turn. A wrong answer is a defect and ends the node.
          this.#header = header;
          answered(header, outcomeOf(call.type, result));
        });
      },
      cancel: (id) => {
        calls.cancel(id);
      },
      header: () => this.#header,
      watch: () => {
        this.#timer ??= setInterval(() => {
          this.#look();
        }, LOOK_MS).unref();
      },
    };
  }

  #parse({ request }: PipelineOperation): PipelineCall | Failure {
    if (request === undefined) {
      const text = 'operation must be exactly one of acquire, renew, release and withdraw';
      return failure('INVALID_REQUEST', text);
    }
    const parsed = parseRequest(request, this.#context.limits);
    if ('faults' in parsed) return failure('INVALID_REQUEST', parsed.faults.join('; '));
    const { ok } = parsed;
    assert(ok.type === request.type, `a ${request.type} was read as a ${ok.type}`);
    if (ok.type !== 'acquire') return ok;
    return { ...ok, requestId: ok.requestId ?? (randomUUID() as RequestId) };
  }

  #look(): void {
    let calm = true;
    for (const stream of this.#streams) {
      if (stream.calm) continue;
      stream.look();
      calm &&= stream.calm;
    }
    if (!calm) return;
    clearInterval(this.#timer);
    this.#timer = undefined;
  }
}

function outcomeOf(type: string, result: CallResult): OperationOutcome {
  switch (result.type) {
    case 'answer': {
      const { answer } = result;
      assert(answer.type === type, `a call of ${type} was answered by ${answer.type}`);
      return { type: 'answer', answer: answer as Extract<OperationOutcome, { readonly type: 'answer' }>['answer'] };
    }
    case 'failure':
      return result;
    case 'notLeader':
      // Routing keeps this between nodes.
      return { type: 'failure', failure: failure('INTERNAL', 'a call was answered by a node that does not lead') };
  }
}
