/** The messages of a pipeline as `protobufjs` knows them, and their enumerations as numbers; read once when the process starts. */
import { join } from 'node:path';
import protobuf from 'protobufjs';
import type { Answer, Call, EndReason, NotGrantedReason } from '../base/api.js';
import { assert } from '../base/assert.js';
import { END_REASONS, NOT_GRANTED_REASONS } from './public-answer.js';
import { PROTO_DIRECTORY } from './public-directory.js';

/** What a pipeline carries. */
export type PipelineCall = Extract<Call, { readonly type: 'acquire' | 'renew' | 'release' | 'withdraw' }>;
/** What it is answered with. */
export type PipelineAnswer = Extract<Answer, { readonly type: PipelineCall['type'] }>;

/** By the names of the fields, which are those of the calls. */
export const PIPELINE_CALLS = ['acquire', 'renew', 'release', 'withdraw'] as const satisfies readonly Call['type'][];

/** Operations that one message may hold. */
export const MAX_MESSAGE_OPERATIONS = 1_000;

/** Numbers of the oneof's fields in an Operation. */
export const OPERATION_FIELDS: Readonly<Record<PipelineCall['type'], number>> = {
  acquire: 3,
  renew: 4,
  release: 5,
  withdraw: 6,
};
/** Numbers of the oneof's fields in an OperationResult. */
export const RESULT_FIELDS: Readonly<Record<PipelineCall['type'] | 'error', number>> = {
  acquire: 2,
  renew: 3,
  release: 4,
  withdraw: 5,
  error: 6,
};

const root = new protobuf.Root();
// The file imports nothing.
root.loadSync(join(PROTO_DIRECTORY, 'fencepost/v1/lease.proto'));
root.resolveAll();

/** PipelineRequest. */
export const PIPELINE_REQUEST = root.lookupType('fencepost.v1.PipelineRequest');
/** PipelineResponse. */
export const PIPELINE_RESPONSE = root.lookupType('fencepost.v1.PipelineResponse');

const END_REASON = root.lookupEnum('fencepost.v1.EndReason');
const NOT_GRANTED_REASON = root.lookupEnum('fencepost.v1.NotGrantedReason');
const END_REASON_NUMBERS = numbersOf(END_REASONS, END_REASON);
const NOT_GRANTED_NUMBERS = numbersOf(NOT_GRANTED_REASONS, NOT_GRANTED_REASON);

/** Its number in the file. */
export function endReasonNumber(reason: EndReason): number {
  return END_REASON_NUMBERS[reason];
}

/** Its number in the file. */
export function notGrantedReasonNumber(reason: NotGrantedReason): number {
  return NOT_GRANTED_NUMBERS[reason];
}

/** Its name in the file, or the number when this version does not know it. */
export function endReasonName(value: number): string | number {
  return END_REASON.valuesById[value] ?? value;
}

/** Its name in the file, or the number when this version does not know it. */
export function notGrantedReasonName(value: number): string | number {
  return NOT_GRANTED_REASON.valuesById[value] ?? value;
}

function numbersOf<T extends string>(names: Readonly<Record<T, string>>, of: protobuf.Enum): Record<T, number> {
  const numbers: Partial<Record<T, number>> = {};
  for (const key in names) {
    const number = of.values[names[key]];
    assert(number !== undefined, `${of.name} has no ${names[key]}`);
    numbers[key] = number;
  }
  return numbers as Record<T, number>;
}
