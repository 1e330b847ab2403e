import fc from 'fast-check';
import protobuf from 'protobufjs';
import { describe, expect, it } from 'vitest';
import { ERRORS, failure as failureOf } from '../../src/base/errors.js';
import { failureFromTrailers, failureToStatus, TRAILER_DETAILS } from '../../src/wire/public-error.js';
import type { Trailers } from '../../src/wire/public-error.js';
import { failure } from './arbitrary-answers.js';

/** As grpc-js hands trailers out. */
function trailers(pairs: readonly (readonly [string, string | Uint8Array])[]): Trailers {
  return { get: (key) => pairs.filter(([name]) => name === key).map(([, value]) => value) };
}

/** The public definitions of google.rpc, as a stranger's client has them. */
const google = protobuf.parse(`
  syntax = "proto3";
  package google;
  message Any { string type_url = 1; bytes value = 2; }
  message Status { int32 code = 1; string message = 2; repeated Any details = 3; }
  message ErrorInfo { string reason = 1; string domain = 2; map<string, string> metadata = 3; }
  message Duration { int64 seconds = 1; int32 nanos = 2; }
  message RetryInfo { Duration retry_delay = 1; }
`).root;
const read = (name: string, bytes: Uint8Array): Record<string, unknown> => {
  const type = google.lookupType(`google.${name}`);
  return type.toObject(type.decode(bytes), { longs: Number, defaults: true });
};

describe('a failure', () => {
  it('comes back from the trailers as it went', () => {
    fc.assert(
      fc.property(failure, (given) => {
        const status = failureToStatus(given);
        expect(status.code).toBe(ERRORS[given.reason].code);
        expect(failureFromTrailers(status.message, trailers(status.trailers))).toEqual({
          failure: given,
          retryDelayMs: ERRORS[given.reason].retryDelayMs,
        });
      }),
    );
  });

  it('has exactly the plain trailers that the API names', () => {
    const keys = (reason: 'NO_LEADER' | 'INVALID_REQUEST'): readonly string[] =>
      failureToStatus(failureOf(reason, 'm')).trailers.map(([key]) => key);
    expect(keys('NO_LEADER')).toEqual(['fencepost-reason', 'fencepost-outcome', 'retry-delay-ms', TRAILER_DETAILS]);
    expect(keys('INVALID_REQUEST')).toEqual(['fencepost-reason', 'fencepost-outcome', TRAILER_DETAILS]);
    const old = failureToStatus(failureOf('REQUEST_TOO_OLD', 'm', { revision: 12 })).trailers;
    expect(old).toContainEqual(['fencepost-revision', '12']);
  });

  it('has details that a reader of google.rpc understands', () => {
    const { trailers: pairs } = failureToStatus(failureOf('DISK_FULL', 'no room'));
    const details = pairs.find(([key]) => key === TRAILER_DETAILS)?.[1];
    expect(details).toBeInstanceOf(Uint8Array);
    const status = read('Status', details as Uint8Array) as {
      code: number;
      message: string;
      details: { typeUrl: string; value: Uint8Array }[];
    };
    expect(status).toMatchObject({ code: 8, message: 'no room' });
    expect(status.details.map(({ typeUrl }) => typeUrl)).toEqual([
      'type.googleapis.com/google.rpc.ErrorInfo',
      'type.googleapis.com/google.rpc.RetryInfo',
    ]);
    const [info, retry] = status.details.map(({ value }) => value);
    expect(read('ErrorInfo', info ?? new Uint8Array(0))).toEqual({
      reason: 'DISK_FULL',
      domain: 'fencepost',
      metadata: { outcome: 'not-done', remedy: ERRORS.DISK_FULL.remedy },
    });
    expect(read('RetryInfo', retry ?? new Uint8Array(0))).toEqual({ retryDelay: { seconds: 5, nanos: 0 } });
    const short = failureToStatus(failureOf('LEADER_CHANGED', 'm')).trailers.at(-1)?.[1] as Uint8Array;
    const shortRetry = (read('Status', short) as { details: { value: Uint8Array }[] }).details[1]?.value;
    expect(read('RetryInfo', shortRetry ?? new Uint8Array(0))).toEqual({
      retryDelay: { seconds: 0, nanos: 50_000_000 },
    });
  });
});

describe('trailers', () => {
  it('of somebody else are no failure', () => {
    expect(failureFromTrailers('m', trailers([]))).toBeUndefined();
    expect(failureFromTrailers('m', trailers([['fencepost-outcome', 'not-done']]))).toBeUndefined();
  });

  it('of a newer node keep what can be kept', () => {
    const newer = (more: [string, string][]): unknown =>
      failureFromTrailers('m', trailers([['fencepost-reason', 'QUEUE_TOO_LONG'], ...more]));
    expect(newer([['fencepost-outcome', 'not-done']])).toEqual({
      failure: { reason: 'INTERNAL', message: 'QUEUE_TOO_LONG: m', outcome: 'not-done' },
      retryDelayMs: 0,
    });
    expect(newer([['retry-delay-ms', '70']])).toEqual({
      failure: { reason: 'LEADER_CHANGED', message: 'QUEUE_TOO_LONG: m', outcome: 'unknown' },
      retryDelayMs: 70,
    });
  });

  it('that make no sense count as the cautious case', () => {
    const odd = trailers([
      ['fencepost-reason', 'toString'],
      ['fencepost-outcome', 'maybe'],
      ['retry-delay-ms', '-5'],
      ['fencepost-revision', '99999999999999999'],
    ]);
    expect(failureFromTrailers('m', odd)).toEqual({
      failure: { reason: 'INTERNAL', message: 'toString: m', outcome: 'unknown' },
      retryDelayMs: 0,
    });
  });
});
