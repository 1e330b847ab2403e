/** Messages of the consensus core ↔ `peer.proto`, CoreMessage. */
import { assert, unreachable } from '../base/assert.js';
import type { Append, AppendReply, Message, Position } from '../raft/types.js';
import { memberFields, metaFields, readMember, readMeta } from './configuration.js';
import { CorruptBytes } from './corrupt.js';
import { entriesFields, readEntries } from './entry.js';
import { flag, integer, part, variant } from './fields.js';
import { uint64 } from './numbers.js';
import { decodeFields, encodeFields, messageType } from './proto.js';
import type { Fields } from './proto.js';

const MESSAGE = messageType('CoreMessage');

/** The bytes of one message; streams carry messages in frames, see `peer-frames.ts`. */
export function encodeMessage(message: Message): Uint8Array {
  return encodeFields(MESSAGE, messageFields(message));
}

/** Throws {@link CorruptBytes}. Payloads are views into `bytes`, not copies. */
export function decodeMessage(bytes: Uint8Array): Message {
  return readMessage(decodeFields(MESSAGE, bytes, 'message'));
}

/** As a part of a frame. */
export function messageFields(message: Message): Fields {
  return {
    from: memberFields(message.from),
    to: memberFields(message.to),
    term: uint64(message.term, 'term'),
    // The members of the oneof have the names of the types.
    [message.type]: bodyOf(message),
  };
}

/** From a part of a frame. */
export function readMessage(fields: Fields): Message {
  const type = variant(fields, 'body', 'message');
  const what = `message ${type}`;
  const body = part(fields, type, what);
  const envelope = {
    from: readMember(part(fields, 'from', what), what),
    to: readMember(part(fields, 'to', what), what),
    term: integer(fields, 'term', what),
  };
  switch (type) {
    case 'preVote':
      return { type, ...envelope, last: readPosition(body, 'last', what), attempt: integer(body, 'attempt', what) };
    case 'preVoteReply':
    case 'voteReply':
      return { type, ...envelope, granted: flag(body, 'granted', what), attempt: integer(body, 'attempt', what) };
    case 'vote':
      return {
        type,
        ...envelope,
        last: readPosition(body, 'last', what),
        attempt: integer(body, 'attempt', what),
        transfer: flag(body, 'transfer', what),
      };
    case 'append':
      return { type, ...envelope, ...readAppend(body, what) };
    case 'appendReply':
      return {
        type,
        ...envelope,
        request: integer(body, 'request', what),
        result: readResult(body, what),
        durable: integer(body, 'durable', what),
        diskLow: flag(body, 'diskLow', what),
      };
    case 'heartbeat':
      return { type, ...envelope, commit: integer(body, 'commit', what), round: integer(body, 'round', what) };
    case 'heartbeatReply':
      return { type, ...envelope, round: integer(body, 'round', what), diskLow: flag(body, 'diskLow', what) };
    case 'installSnapshot':
      return {
        type,
        ...envelope,
        meta: readMeta(part(body, 'meta', what), what),
        request: integer(body, 'request', what),
      };
    case 'timeoutNow':
    case 'notMember':
      return { type, ...envelope };
    default:
      throw new CorruptBytes(what, 'is of a kind that this version does not know');
  }
}

function bodyOf(message: Message): Fields {
  switch (message.type) {
    case 'preVote':
      return { last: positionFields(message.last), attempt: uint64(message.attempt, 'attempt') };
    case 'preVoteReply':
    case 'voteReply':
      return { granted: message.granted, attempt: uint64(message.attempt, 'attempt') };
    case 'vote':
      return {
        last: positionFields(message.last),
        attempt: uint64(message.attempt, 'attempt'),
        transfer: message.transfer,
      };
    case 'append':
      assert(
        message.entries[0] === undefined || message.entries[0].index === message.prev.index + 1,
        `entries after ${message.prev.index} begin at ${message.entries[0]?.index ?? 0}`,
      );
      return {
        prev: positionFields(message.prev),
        entries: entriesFields(message.entries),
        commit: uint64(message.commit, 'commit'),
        request: uint64(message.request, 'request'),
      };
    case 'appendReply':
      return {
        request: uint64(message.request, 'request'),
        ...(message.result.type === 'proved'
          ? { proved: uint64(message.result.index, 'proved') }
          : { conflict: positionFields(message.result.hint) }),
        durable: uint64(message.durable, 'durable'),
        diskLow: message.diskLow,
      };
    case 'heartbeat':
      return { commit: uint64(message.commit, 'commit'), round: uint64(message.round, 'round') };
    case 'heartbeatReply':
      return { round: uint64(message.round, 'round'), diskLow: message.diskLow };
    case 'installSnapshot':
      return { meta: metaFields(message.meta), request: uint64(message.request, 'request') };
    case 'timeoutNow':
    case 'notMember':
      return {};
  }
  return unreachable(message);
}

function readAppend(body: Fields, what: string): Pick<Append, 'prev' | 'entries' | 'commit' | 'request'> {
  const prev = readPosition(body, 'prev', what);
  return {
    prev,
    entries: readEntries(body, prev.index + 1, what),
    commit: integer(body, 'commit', what),
    request: integer(body, 'request', what),
  };
}

function readResult(body: Fields, what: string): AppendReply['result'] {
  return variant(body, 'result', what) === 'proved'
    ? { type: 'proved', index: integer(body, 'proved', what) }
    : { type: 'conflict', hint: readPosition(body, 'conflict', what) };
}

function positionFields(position: Position): Fields {
  return { index: uint64(position.index, 'index'), term: uint64(position.term, 'term') };
}

function readPosition(fields: Fields, field: string, what: string): Position {
  const position = part(fields, field, what);
  return { index: integer(position, 'index', what), term: integer(position, 'term', what) };
}
