/**
 * Calls and answers → the messages inside a pipeline, written field by field: on this path there are tens of thousands
 * a second, and a message object with its `bigint`s for each would cost more than the bytes. A test holds what is written
 * here to the codecs of the plain calls.
 */
import protobuf from 'protobufjs';
import type { Answer, EndedView, Header, LeaseRef, LeaseState, LeaseView, Metadata } from '../base/api.js';
import { assert, unreachable } from '../base/assert.js';
import { ERRORS } from '../base/errors.js';
import type { Failure } from '../base/errors.js';
import { endReasonNumber, notGrantedReasonNumber } from './public-pipeline-messages.js';
import type { PipelineCall } from './public-pipeline-messages.js';

type Writer = protobuf.Writer;

const VARINT = 0;
const LENGTH_DELIMITED = 2;
const MAX_UINT32 = 0xffff_ffff;

/** Writes a call as the fields of its request message. */
export function writeCall(to: Writer, call: PipelineCall): void {
  switch (call.type) {
    case 'acquire':
      text(to, 1, call.domain);
      text(to, 2, call.requestId);
      text(to, 3, call.holder);
      uint32(to, 4, call.ttlMs);
      uint32(to, 5, call.waitMs);
      metadata(to, 6, call.metadata);
      uint32(to, 7, call.coolDownMs);
      uint32(to, 8, call.slots);
      int64(to, 9, call.seenRevision);
      return;
    case 'renew':
      for (const lease of call.leases) ref(to, 1, lease);
      return;
    case 'release':
      ref(to, 1, call.lease);
      return;
    case 'withdraw':
      text(to, 1, call.domain);
      text(to, 2, call.requestId);
      return;
  }
  unreachable(call);
}

/** Writes an answer as the fields of its response message, without a header. */
export function writeAnswer(to: Writer, answer: Extract<Answer, { readonly type: PipelineCall['type'] }>): void {
  switch (answer.type) {
    case 'acquire':
      text(to, 2, answer.requestId);
      outcome(to, answer.outcome);
      return;
    case 'renew':
      for (const state of answer.results) {
        begin(to, 2);
        leaseState(to, state);
        to.ldelim();
      }
      return;
    case 'release':
      if (answer.released) to.uint32(key(2, VARINT)).bool(true);
      if (answer.ended !== undefined) ended(to, 3, answer.ended);
      return;
    case 'withdraw':
      return;
  }
  unreachable(answer);
}

/** Writes a ResponseHeader's fields. */
export function writeHeader(to: Writer, header: Header): void {
  text(to, 1, header.cluster);
  text(to, 2, header.incarnation);
  int64(to, 3, header.revision);
  text(to, 4, header.node);
  text(to, 5, header.leader ?? '');
}

/** Writes an OperationError's fields. */
export function writeFailure(to: Writer, failure: Failure): void {
  const { code, retryDelayMs } = ERRORS[failure.reason];
  uint32(to, 1, code);
  text(to, 2, failure.reason);
  text(to, 3, failure.message);
  if (failure.outcome === 'unknown') to.uint32(key(4, VARINT)).bool(true);
  uint32(to, 5, retryDelayMs);
  int64(to, 6, failure.revision ?? 0);
}

/** Begins a message field; `to.ldelim()` ends it. */
export function begin(to: Writer, field: number): void {
  to.uint32(key(field, LENGTH_DELIMITED)).fork();
}

/** A `uint32` field; 0 is left out. */
export function uint32(to: Writer, field: number, value: number): void {
  // The message is made only for a wrong number: it would cost more than the bytes of a right one.
  if (!Number.isInteger(value) || value < 0 || value > MAX_UINT32) {
    assert(false, `field ${field} is ${value}; it must be an integer from 0 to 2^32 - 1`);
  }
  if (value !== 0) to.uint32(key(field, VARINT)).uint32(value);
}

/** An `int64` field; 0 is left out. Every number of the program is exact up to 2^53 − 1, and none is negative. */
function int64(to: Writer, field: number, value: number): void {
  if (!Number.isSafeInteger(value) || value < 0) {
    assert(false, `field ${field} is ${value}; it must be an integer from 0 to 2^53 - 1`);
  }
  if (value !== 0) to.uint32(key(field, VARINT)).int64(value);
}

function text(to: Writer, field: number, value: string): void {
  if (value !== '') to.uint32(key(field, LENGTH_DELIMITED)).string(value);
}

function outcome(to: Writer, of: Extract<Answer, { readonly type: 'acquire' }>['outcome']): void {
  switch (of.type) {
    case 'granted':
      lease(to, 3, of.lease);
      return;
    case 'queued':
      begin(to, 4);
      uint32(to, 1, of.position);
      if (of.current !== undefined) lease(to, 2, of.current);
      to.ldelim();
      return;
    case 'notGranted':
      begin(to, 5);
      uint32(to, 1, notGrantedReasonNumber(of.reason));
      if (of.current !== undefined) lease(to, 2, of.current);
      uint32(to, 3, of.queueLength);
      uint32(to, 4, of.coolDownLeftMs);
      to.ldelim();
      return;
    case 'ended':
      ended(to, 6, of.ended);
      return;
  }
  unreachable(of);
}

function leaseState(to: Writer, state: LeaseState): void {
  if (state.type === 'ended') {
    ended(to, 2, state.ended);
    return;
  }
  begin(to, 1);
  uint32(to, 1, state.ttlMs);
  to.ldelim();
}

function lease(to: Writer, field: number, view: LeaseView): void {
  begin(to, field);
  text(to, 1, view.domain);
  int64(to, 2, view.token);
  text(to, 3, view.holder);
  metadata(to, 4, view.metadata);
  uint32(to, 5, view.ttlMs);
  int64(to, 6, view.grantedAtUnixMs);
  to.ldelim();
}

function ref(to: Writer, field: number, of: LeaseRef): void {
  begin(to, field);
  text(to, 1, of.domain);
  int64(to, 2, of.token);
  to.ldelim();
}

function ended(to: Writer, field: number, view: EndedView): void {
  begin(to, field);
  if (view.lease !== undefined) ref(to, 1, view.lease);
  uint32(to, 2, endReasonNumber(view.reason));
  text(to, 3, view.by);
  text(to, 4, view.note);
  int64(to, 5, view.currentToken);
  to.ldelim();
}

/** A map is a message of key and value for each pair. */
function metadata(to: Writer, field: number, pairs: Metadata): void {
  for (const [name, value] of pairs) {
    begin(to, field);
    text(to, 1, name);
    text(to, 2, value);
    to.ldelim();
  }
}

function key(field: number, wireType: number): number {
  return (field << 3) | wireType;
}
