/**
 * `LeaseService.Pipeline` on the wire, for the server and the client: one message holds many operations or many results.
 * The method is registered raw, bytes in and bytes out; this file makes the bytes and `public-pipeline-read.ts` reads them.
 */
import protobuf from 'protobufjs';
import type { Header } from '../base/api.js';
import type { Failure } from '../base/errors.js';
import { MAX_MESSAGE_OPERATIONS, OPERATION_FIELDS, RESULT_FIELDS } from './public-pipeline-messages.js';
import type { PipelineAnswer, PipelineCall } from './public-pipeline-messages.js';
import { begin, uint32, writeAnswer, writeCall, writeFailure, writeHeader } from './public-pipeline-write.js';

/** A message is closed when it has this many bytes; what one operation adds is far below the limit of a message. */
const MESSAGE_BYTES = 256 * 1024;

/** How one operation ended, as a server says it. */
export type OperationOutcome =
  | { readonly type: 'answer'; readonly answer: PipelineAnswer }
  | { readonly type: 'failure'; readonly failure: Failure };

const asIs = (bytes: Buffer): Buffer => bytes;

/** As grpc-js takes it, on both sides. */
export const PIPELINE_METHOD = {
  path: '/fencepost.v1.LeaseService/Pipeline',
  requestStream: true,
  responseStream: true,
  requestSerialize: asIs,
  requestDeserialize: asIs,
  responseSerialize: asIs,
  responseDeserialize: asIs,
} as const;

/** Gathers operations for one PipelineRequest. */
export class RequestBatch {
  readonly #writer = protobuf.Writer.create();
  #count = 0;

  /** How many it has. */
  get count(): number {
    return this.#count;
  }

  /** True when nothing more should be added: {@link finish} it. */
  get full(): boolean {
    return this.#count >= MAX_MESSAGE_OPERATIONS || this.#writer.len >= MESSAGE_BYTES;
  }

  /** Adds an operation; `timeoutMs` is a whole number from 1 on. */
  add(id: number, timeoutMs: number, call: PipelineCall): void {
    const writer = this.#writer;
    this.#count++;
    begin(writer, 1);
    uint32(writer, 1, id);
    uint32(writer, 2, timeoutMs);
    begin(writer, OPERATION_FIELDS[call.type]);
    writeCall(writer, call);
    writer.ldelim().ldelim();
  }

  /** The bytes of what was added; the batch is empty again. */
  finish(): Buffer {
    this.#count = 0;
    return finished(this.#writer);
  }
}

/** Gathers results for one PipelineResponse. */
export class ResponseBatch {
  readonly #writer = protobuf.Writer.create();
  #count = 0;

  /** How many it has. */
  get count(): number {
    return this.#count;
  }

  /** True when nothing more should be added: {@link finish} it. */
  get full(): boolean {
    return this.#writer.len >= MESSAGE_BYTES;
  }

  /** Adds the result of one operation. */
  add(id: number, outcome: OperationOutcome): void {
    const writer = this.#writer;
    this.#count++;
    begin(writer, 2);
    uint32(writer, 1, id);
    if (outcome.type === 'answer') {
      begin(writer, RESULT_FIELDS[outcome.answer.type]);
      writeAnswer(writer, outcome.answer);
    } else {
      begin(writer, RESULT_FIELDS.error);
      writeFailure(writer, outcome.failure);
    }
    writer.ldelim().ldelim();
  }

  /** The bytes of what was added, under one header; the batch is empty again. */
  finish(header: Header): Buffer {
    this.#count = 0;
    begin(this.#writer, 1);
    writeHeader(this.#writer, header);
    this.#writer.ldelim();
    return finished(this.#writer);
  }
}

function finished(writer: protobuf.Writer): Buffer {
  const bytes = writer.finish();
  writer.reset();
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
}
