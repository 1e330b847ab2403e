import fc from 'fast-check';
import protobuf from 'protobufjs';
import { describe, expect, it } from 'vitest';
import { ERRORS, failure } from '../../src/base/errors.js';
import type { Reason } from '../../src/base/errors.js';
import type { Revision } from '../../src/base/revision.js';
import { responseOf } from '../../src/wire/public-answer.js';
import { encodeRequest, encodeResponse, decodeRequest, decodeResponse } from '../../src/wire/public-messages.js';
import { parseRequest } from '../../src/wire/public-parse.js';
import { OPERATION_FIELDS, PIPELINE_CALLS, PIPELINE_REQUEST } from '../../src/wire/public-pipeline-messages.js';
import type { PipelineAnswer, PipelineCall } from '../../src/wire/public-pipeline-messages.js';
import { readOperations, readResults, UnreadablePipeline } from '../../src/wire/public-pipeline-read.js';
import { writeAnswer, writeCall } from '../../src/wire/public-pipeline-write.js';
import { PIPELINE_METHOD, RequestBatch, ResponseBatch } from '../../src/wire/public-pipeline.js';
import type { OperationOutcome } from '../../src/wire/public-pipeline.js';
import { requestOf } from '../../src/wire/public-request.js';
import { UnexpectedResponse } from '../../src/wire/public-unexpected.js';
import { answer, call, header, LIMITS } from './arbitrary-answers.js';
import * as any from './arbitraries.js';

const isPipelined = (type: string): boolean => (PIPELINE_CALLS as readonly string[]).includes(type);
const pipelineCall = call.filter(({ type }) => isPipelined(type)) as fc.Arbitrary<PipelineCall>;
const pipelineAnswer = answer.filter(({ type }) => isPipelined(type)) as fc.Arbitrary<PipelineAnswer>;
const known = Object.keys(ERRORS) as Reason[];
const outcome: fc.Arbitrary<OperationOutcome> = fc.oneof(
  pipelineAnswer.map((value) => ({ type: 'answer' as const, answer: value })),
  fc
    .record({
      reason: fc.constantFrom(...known),
      message: any.text,
      outcome: fc.constantFrom('not-done' as const, 'unknown' as const),
      revision: fc.option(any.token, { nil: undefined }),
    })
    .map(({ reason, message, revision, ...rest }) => ({
      type: 'failure' as const,
      failure: failure(reason, message, revision === undefined ? rest : { ...rest, revision }),
    })),
);

function written(write: (to: protobuf.Writer) => void): Buffer {
  const writer = protobuf.Writer.create();
  write(writer);
  return Buffer.from(writer.finish());
}

/** Fields by hand: number and bytes of each length-delimited one, number and value of each varint. */
function raw(fields: readonly (readonly [number, number | Uint8Array])[]): Buffer {
  return written((to) => {
    for (const [id, value] of fields) {
      if (typeof value === 'number') to.uint32(id << 3).uint32(value);
      else to.uint32((id << 3) | 2).bytes(value);
    }
  });
}

describe('operations', () => {
  it('come back as the calls that were made, in their order', () => {
    const operation = fc.record({ id: any.uint32, timeoutMs: any.uint32, call: pipelineCall });
    fc.assert(
      fc.property(fc.array(operation, { maxLength: 5 }), (operations) => {
        const batch = new RequestBatch();
        for (const each of operations) batch.add(each.id, each.timeoutMs, each.call);
        expect(batch.count).toBe(operations.length);
        const read = readOperations(batch.finish());
        expect(batch.count).toBe(0);
        expect(
          read.map(({ id, timeoutMs, request }) => ({
            id,
            timeoutMs,
            parsed: request === undefined ? undefined : parseRequest(request, LIMITS),
          })),
        ).toEqual(operations.map(({ id, timeoutMs, call: ok }) => ({ id, timeoutMs, parsed: { ok } })));
      }),
    );
  });

  it('are written as the plain calls are', () => {
    fc.assert(
      fc.property(pipelineCall, (made) => {
        const bytes = written((to) => {
          writeCall(to, made);
        });
        const { type, message } = requestOf(made);
        expect(decodeRequest(type, bytes)).toEqual(decodeRequest(type, encodeRequest(type, message as never)));
      }),
    );
  });

  it('are read as the plain calls are, also outside the limits', () => {
    const int64 = fc.bigInt({ min: -(2n ** 63n), max: 2n ** 63n - 1n });
    fc.assert(
      fc.property(int64, any.text, any.uint32, (number, text, small) => {
        const messages = {
          acquire: {
            domain: text,
            requestId: text,
            holder: text,
            ttlMs: small,
            waitMs: small,
            metadata: Object.fromEntries([['__proto__', text]]),
            coolDownMs: small,
            slots: small,
            seenRevision: number,
          },
          renew: { leases: [{ domain: text, token: number }] },
          release: { lease: { domain: text, token: number } },
          withdraw: { domain: text, requestId: text },
        } as const;
        for (const type of PIPELINE_CALLS) {
          const bytes = encodeRequest(type, messages[type] as never);
          const [read] = readOperations(raw([[1, raw([[OPERATION_FIELDS[type], bytes]])]]));
          const { request } = read ?? {};
          expect(request?.type).toBe(type);
          if (request === undefined) throw new Error('no request');
          const plain = { type, message: decodeRequest(type, bytes) } as typeof request;
          expect(parseRequest(request, LIMITS)).toEqual(parseRequest(plain, LIMITS));
        }
      }),
    );
  });

  it.each([
    ['without a kind', raw([[1, 7]])],
    [
      'of a kind that this version does not know',
      raw([
        [1, 7],
        [9, raw([])],
      ]),
    ],
    [
      'of two kinds',
      raw([
        [1, 7],
        [OPERATION_FIELDS.release, raw([])],
        [OPERATION_FIELDS.withdraw, raw([])],
      ]),
    ],
  ])('%s have no request, and spoil no other', (_, operation) => {
    const good = raw([
      [1, 8],
      [OPERATION_FIELDS.release, raw([])],
    ]);
    const read = readOperations(
      raw([
        [1, operation],
        [1, good],
      ]),
    );
    expect(read).toEqual([
      { id: 7, timeoutMs: 0, request: undefined },
      { id: 8, timeoutMs: 0, request: { type: 'release', message: { lease: null } } },
    ]);
  });

  it('are full at 1 000, or at 256 KiB', () => {
    const release = { type: 'release', lease: { domain: 'd' as never, token: 1 as Revision } } as const;
    const many = new RequestBatch();
    for (let n = 1; n < 1_000; n++) many.add(n, 1, release);
    expect(many.full).toBe(false);
    many.add(1_000, 1, release);
    expect(many.full).toBe(true);
    const big = new RequestBatch();
    const leases = Array.from({ length: 1_000 }, () => ({ domain: 'd'.repeat(255) as never, token: 1 as Revision }));
    big.add(1, 1, { type: 'renew', leases });
    expect([big.count, big.full]).toEqual([1, true]);
  });

  it('in noise are refused, and in no other way', () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 60 }), (bytes) => {
        try {
          readOperations(Buffer.from(bytes));
        } catch (error) {
          expect(error).toBeInstanceOf(UnreadablePipeline);
        }
      }),
      { numRuns: 500 },
    );
    expect(() => readOperations(Buffer.from([0xff]))).toThrow('no PipelineRequest');
  });
});

describe('results', () => {
  it('come back as they were answered, with their header', () => {
    fc.assert(
      fc.property(fc.array(fc.record({ id: any.uint32, outcome }), { maxLength: 5 }), header, (results, of) => {
        const batch = new ResponseBatch();
        for (const each of results) batch.add(each.id, each.outcome);
        const read = readResults(batch.finish(of));
        expect(read.header).toEqual(of);
        expect(read.results).toEqual(
          results.map(({ id, outcome: sent }) =>
            sent.type === 'answer'
              ? { id, ...sent }
              : { id, ...sent, retryDelayMs: ERRORS[sent.failure.reason].retryDelayMs },
          ),
        );
      }),
    );
  });

  it('are written as the plain answers are', () => {
    fc.assert(
      fc.property(pipelineAnswer, (made) => {
        const bytes = written((to) => {
          writeAnswer(to, made);
        });
        const { type, message } = responseOf({ header: undefined, answer: made, version: '' });
        expect(decodeResponse(type, bytes)).toEqual(decodeResponse(type, encodeResponse(type, message as never)));
      }),
    );
  });

  it('from a newer server are read as its plain answers are: a reason for an end, an error', () => {
    const headerBytes = raw([[4, Buffer.from('n1')]]);
    const ended = raw([
      [6, raw([[2, 99]])],
      [2, Buffer.from('123e4567-e89b-42d3-a456-426614174000')],
    ]);
    const error = raw([
      [1, 14],
      [2, Buffer.from('NEW_REASON')],
      [3, Buffer.from('text')],
      [5, 70],
    ]);
    const { results } = readResults(
      raw([
        [1, headerBytes],
        [
          2,
          raw([
            [1, 3],
            [2, ended],
          ]),
        ],
        [
          2,
          raw([
            [1, 4],
            [6, error],
          ]),
        ],
      ]),
    );
    expect(results).toMatchObject([
      { id: 3, answer: { outcome: { type: 'ended', ended: { reason: 'unspecified' } } } },
      {
        id: 4,
        failure: { reason: 'LEADER_CHANGED', message: 'NEW_REASON: text', outcome: 'not-done' },
        retryDelayMs: 70,
      },
    ]);
  });

  it.each([
    [
      'no header',
      raw([
        [
          2,
          raw([
            [1, 1],
            [5, raw([])],
          ]),
        ],
      ]),
    ],
    [
      'no outcome',
      raw([
        [1, raw([[4, Buffer.from('n1')]])],
        [2, raw([[1, 1]])],
      ]),
    ],
    [
      'two outcomes',
      raw([
        [1, raw([[4, Buffer.from('n1')]])],
        [
          2,
          raw([
            [1, 1],
            [4, raw([])],
            [5, raw([])],
          ]),
        ],
      ]),
    ],
    ['a node without a name', raw([[1, raw([])]])],
    ['no message', Buffer.from([0xff])],
  ])('with %s are no word of a node', (_, bytes) => {
    expect(() => readResults(bytes)).toThrow(UnexpectedResponse);
  });

  it('in noise are refused, and in no other way', () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 60 }), (bytes) => {
        try {
          readResults(Buffer.from(bytes));
        } catch (error) {
          expect(error).toBeInstanceOf(UnexpectedResponse);
        }
      }),
      { numRuns: 500 },
    );
  });
});

it('the method and the numbers are those of the file', () => {
  const service = PIPELINE_REQUEST.root.lookupService('fencepost.v1.LeaseService');
  const method = service.methods['Pipeline'];
  expect([method?.requestStream, method?.responseStream]).toEqual([true, true]);
  expect(PIPELINE_METHOD.path).toBe('/fencepost.v1.LeaseService/Pipeline');
  const operation = PIPELINE_REQUEST.root.lookupType('fencepost.v1.Operation');
  for (const type of PIPELINE_CALLS) expect(operation.fields[type]?.id).toBe(OPERATION_FIELDS[type]);
});
