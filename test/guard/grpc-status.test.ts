import { Metadata, status } from '@grpc/grpc-js';
import protobuf from 'protobufjs';
import { describe, expect, it } from 'vitest';
import { outcomeFrom } from '../../src/guard/grpc.js';
import type { GrpcRefusalError } from '../../src/guard/grpc.js';
import { refusalError } from '../../src/guard/grpc-status.js';
import type { GrpcRefusal } from '../../src/guard/grpc-status.js';

const LEASE = { domain: 'orders/eu', token: 9_007_199_254_740_993n, cluster: 'prod', incarnation: 'a1' };

/** As `google/rpc/status.proto`, `google/rpc/error_details.proto` and `google/protobuf/any.proto` have them. */
const { root } = protobuf.parse(
  `syntax = "proto3";
  package google;
  message Any { string type_url = 1; bytes value = 2; }
  message Status { int32 code = 1; string message = 2; repeated Any details = 3; }
  message ErrorInfo { string reason = 1; string domain = 2; map<string, string> metadata = 3; }`,
  { keepCase: true },
);
const [Status, ErrorInfo] = ['Status', 'ErrorInfo'].map((name) => root.lookupType(`google.${name}`));

function decoded(error: GrpcRefusalError): unknown {
  const [bytes] = error.metadata.get('grpc-status-details-bin');
  if (!(bytes instanceof Uint8Array) || Status === undefined || ErrorInfo === undefined) throw new Error('no details');
  const { details, ...more } = Status.toObject(Status.decode(bytes)) as {
    details: { type_url: string; value: Buffer }[];
  };
  return {
    ...more,
    details: details.map(({ type_url, value }) => [type_url, ErrorInfo.toObject(ErrorInfo.decode(value))]),
  };
}

/** An error of a call with these details. */
function received(info: object, type = 'google.rpc.ErrorInfo') {
  const value = ErrorInfo?.encode(info).finish();
  const details = [{ type_url: 'type.googleapis.com/google.rpc.Help', value: Buffer.from([1]) }];
  const more = [...details, { type_url: `type.googleapis.com/${type}`, value }];
  return errorWith(Status?.encode({ code: 9, message: 'm', details: more }).finish());
}

function errorWith(bytes: Uint8Array | undefined) {
  const metadata = new Metadata();
  if (bytes !== undefined) metadata.set('grpc-status-details-bin', Buffer.from(bytes));
  return { details: 'm', metadata };
}

describe('a refusal as the status of a call', () => {
  it.each<[string, GrpcRefusal, number, string, Readonly<Record<string, string>>, string]>([
    [
      'a missing lease',
      { status: 'required', domains: ['a', 'b'] },
      status.INVALID_ARGUMENT,
      'FENCING_LEASE_REQUIRED',
      { required: 'a,b' },
      'send a lease of a, b in the metadata fencing-domain, fencing-token, fencing-cluster and fencing-incarnation',
    ],
    [
      'metadata that cannot be read',
      { status: 'malformed', faults: ['one', 'two'] },
      status.INVALID_ARGUMENT,
      'FENCING_METADATA_MALFORMED',
      {},
      'one; two',
    ],
    [
      'stale',
      { status: 'stale', fence: 2n ** 53n + 3n },
      status.FAILED_PRECONDITION,
      'STALE_FENCING_TOKEN',
      { fence: '9007199254740995' },
      'token 9007199254740995 was accepted before. Stop the work of this lease; do not call again',
    ],
    [
      'another issuer',
      { status: 'rejected', reason: 'issuer', message: 'moved' },
      status.FAILED_PRECONDITION,
      'FENCE_OF_ANOTHER_ISSUER',
      {},
      'moved',
    ],
    [
      'another incarnation',
      { status: 'rejected', reason: 'incarnation', message: 'two' },
      status.FAILED_PRECONDITION,
      'TOKEN_OF_ANOTHER_INCARNATION',
      {},
      'two',
    ],
    [
      'a token too far ahead',
      { status: 'rejected', reason: 'jump', message: 'far' },
      status.FAILED_PRECONDITION,
      'FENCING_TOKEN_JUMP',
      {},
      'far',
    ],
    [
      'a missing row',
      { status: 'missing' },
      status.NOT_FOUND,
      'FENCED_ROW_MISSING',
      {},
      'the fence let the call pass, and what it was to change is not there',
    ],
    [
      'given up',
      { status: 'retry', attempts: 5, cause: new Error('secret') },
      status.ABORTED,
      'FENCED_OPERATION_GIVEN_UP',
      { attempts: '5' },
      'given up 5 times because of others at the same time; call again after a pause',
    ],
  ])('%s', (_, refusal, code, reason, more, message) => {
    const error = refusalError(refusal, [LEASE, { ...LEASE, domain: 'b', token: 7n }]);
    const metadata = { domain: 'orders/eu,b', presented: '9007199254740993,7', ...more };
    expect(decoded(error)).toEqual({
      code,
      message,
      details: [['type.googleapis.com/google.rpc.ErrorInfo', { reason, domain: 'fencepost', metadata }]],
    });
    expect([error.name, error.code, error.message, error.details]).toEqual([
      'GrpcRefusalError',
      code,
      message,
      message,
    ]);
    const again: Readonly<Record<string, unknown>> = { required: undefined, malformed: undefined };
    const outcome = refusal.status === 'retry' ? { ...refusal, cause: message } : refusal;
    expect(outcomeFrom(error)).toEqual(refusal.status in again ? undefined : outcome);
  });

  it.each<[string, ReturnType<typeof errorWith>]>([
    ['without details', errorWith(undefined)],
    ['with details that cannot be read', errorWith(Buffer.from([0xff]))],
    ['with details of another kind', received({ reason: 'STALE_FENCING_TOKEN' }, 'google.rpc.Help')],
    ['of another service', received({ reason: 'STALE_FENCING_TOKEN', domain: 'x', metadata: { fence: '6' } })],
    ['for a reason that it does not know', received({ reason: 'NEW', domain: 'fencepost' })],
    ['that is stale without its fence', received({ reason: 'STALE_FENCING_TOKEN', domain: 'fencepost' })],
    [
      'that is stale at half a fence',
      received({ reason: 'STALE_FENCING_TOKEN', domain: 'fencepost', metadata: { fence: '0x6' } }),
    ],
    ['that is given up without a number', received({ reason: 'FENCED_OPERATION_GIVEN_UP', domain: 'fencepost' })],
  ])('is none of ours in an error %s', (_, error) => {
    expect(outcomeFrom(error)).toBeUndefined();
  });

  it('is found beside other details', () => {
    const error = received({ reason: 'STALE_FENCING_TOKEN', domain: 'fencepost', metadata: { fence: '6' } });
    expect(outcomeFrom(error)).toEqual({ status: 'stale', fence: 6n });
  });
});
