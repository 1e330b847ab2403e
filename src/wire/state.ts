/**
 * Records of the state table ↔ keys and values, and the summary that every cut writes (`record.proto`).
 * A key is one tag byte and the name, so the records of one kind lie together and sort by their names as bytes.
 */
import { assert } from '../base/assert.js';
import { domainFault } from '../base/domain.js';
import type { Domain } from '../base/ids.js';
import type { Revision } from '../base/revision.js';
import { encodeUtf8 } from '../base/utf8.js';
import type { FinishedRequest, Lease, RecordKey, StateLimits, StateRecord, StateSummary } from '../lease/types.js';
import { CorruptBytes } from './corrupt.js';
import {
  checkFormat,
  domain,
  enumName,
  enumNumber,
  flag,
  has,
  integer,
  name,
  part,
  parts,
  positive,
  requestId,
  revision,
  text,
  token,
  wellFormed,
} from './fields.js';
import type { Names } from './fields.js';
import { metadataFields, readMetadata } from './metadata.js';
import { uint32, uint64 } from './numbers.js';
import { decodeFields, encodeFields, FORMAT, messageType } from './proto.js';
import type { Fields } from './proto.js';

const DOMAIN_RECORD = messageType('DomainRecord');
const FINISHED_RECORD = messageType('FinishedRecord');
const SUMMARY = messageType('StateSummary');

/** First bytes of the keys: 'd' and 'f'. */
const DOMAIN_TAG = 0x64;
const FINISHED_TAG = 0x66;

/** In the order of their numbers on the wire. */
export const FINISH_REASONS: Names<FinishedRequest['reason']> = [
  'expired',
  'released',
  'withdrawn',
  'force_released',
  'earlier_history',
];

/** The bytes that name a record in the table. */
export function recordKey(key: RecordKey): Uint8Array {
  if (key.type === 'domain') {
    const bytes = encodeUtf8(key.domain);
    const out = new Uint8Array(1 + bytes.length);
    out[0] = DOMAIN_TAG;
    out.set(bytes, 1);
    return out;
  }
  const out = new Uint8Array(9);
  const view = new DataView(out.buffer);
  const number = uint64(key.lastRevision, 'lastRevision');
  view.setUint8(0, FINISHED_TAG);
  view.setUint32(1, Math.floor(number / 2 ** 32));
  view.setUint32(5, number >>> 0);
  return out;
}

/** A record as key and value. */
export function encodeStateRecord(record: StateRecord): { key: Uint8Array; value: Uint8Array } {
  const key = recordKey(record);
  if (record.type === 'domain') {
    assert(record.domain === record.lease.domain, `record of ${record.domain} holds a lease of ${record.lease.domain}`);
    return { key, value: encodeFields(DOMAIN_RECORD, leaseFields(record.lease)) };
  }
  const last = record.requests.at(-1)?.finishedAt;
  assert(
    last === record.lastRevision,
    `finished requests end at ${last ?? 'none'}, the key says ${record.lastRevision}`,
  );
  return {
    key,
    value: encodeFields(FINISHED_RECORD, { format: FORMAT, requests: record.requests.map(finishedFields) }),
  };
}

/** The record under `key`. Throws {@link CorruptBytes}, also when key and value do not belong together. */
export function decodeStateRecord(key: Uint8Array, value: Uint8Array): StateRecord {
  const named = readKey(key);
  if (named.type === 'domain') {
    const what = `record of domain ${named.domain}`;
    return { ...named, lease: readLease(decodeFields(DOMAIN_RECORD, value, what), named.domain, what) };
  }
  const what = `record of requests finished up to ${named.lastRevision}`;
  const fields = decodeFields(FINISHED_RECORD, value, what);
  checkFormat(fields, what);
  let before = 0;
  const requests = parts(fields, 'requests', what).map((request) => {
    const finished = readFinished(request, what);
    if (finished.finishedAt < before) throw new CorruptBytes(what, 'requests are not in order of their revisions');
    before = finished.finishedAt;
    return finished;
  });
  if (before !== named.lastRevision) throw new CorruptBytes(what, `the last request finished at ${before}`);
  return { ...named, requests };
}

/** The summary as a value of its own. */
export function encodeSummary(summary: StateSummary): Uint8Array {
  return encodeFields(SUMMARY, summaryFields(summary));
}

/** Throws {@link CorruptBytes}. */
export function decodeSummary(bytes: Uint8Array): StateSummary {
  return readSummary(decodeFields(SUMMARY, bytes, 'state summary'));
}

/** The summary as a part of another message. */
export function summaryFields(summary: StateSummary): Fields {
  return {
    format: FORMAT,
    forgotten: uint64(summary.forgotten, 'forgotten'),
    holding: summary.holding,
    limits: limitsFields(summary.limits),
  };
}

/** The summary from a part of another message. */
export function readSummary(fields: Fields): StateSummary {
  const what = 'state summary';
  checkFormat(fields, what);
  return {
    forgotten: revision(fields, 'forgotten', what),
    holding: flag(fields, 'holding', what),
    limits: readLimits(part(fields, 'limits', what), what),
  };
}

/** The state machine's limits as a part of another message. */
export function limitsFields(limits: StateLimits): Fields {
  return { finishedRequests: uint32(limits.finishedRequests, 'finishedRequests') };
}

/** The state machine's limits from a part of another message. */
export function readLimits(fields: Fields, what: string): StateLimits {
  return { finishedRequests: integer(fields, 'finishedRequests', what) };
}

function readKey(key: Uint8Array): RecordKey {
  const what = 'key of a state record';
  if (key[0] === DOMAIN_TAG) {
    let text = '';
    for (const byte of key.subarray(1)) text += String.fromCharCode(byte);
    const fault = domainFault(text);
    if (fault !== undefined) throw new CorruptBytes(what, `domain ${fault}`);
    return { type: 'domain', domain: text as Domain };
  }
  if (key[0] !== FINISHED_TAG || key.length !== 9) throw new CorruptBytes(what, 'is of no known kind');
  const view = new DataView(key.buffer, key.byteOffset, key.byteLength);
  const number = view.getUint32(1) * 2 ** 32 + view.getUint32(5);
  if (number === 0 || number > Number.MAX_SAFE_INTEGER) throw new CorruptBytes(what, 'revision is 0 or above 2^53 - 1');
  return { type: 'finished', lastRevision: number as Revision };
}

function leaseFields(lease: Lease): Fields {
  return {
    format: FORMAT,
    token: uint64(lease.token, 'token'),
    requestId: lease.requestId,
    holder: wellFormed(lease.holder, 'holder'),
    metadata: metadataFields(lease.metadata),
    ttlMs: uint32(lease.ttlMs, 'ttlMs'),
    grantedAtUnixMs: uint64(lease.grantedAtUnixMs, 'grantedAtUnixMs'),
    owner: wellFormed(lease.owner, 'owner'),
    version: uint64(lease.version, 'version'),
    checkpointLeftMs:
      lease.checkpointLeftMs === undefined ? undefined : uint64(lease.checkpointLeftMs, 'checkpointLeftMs'),
  };
}

function readLease(fields: Fields, of: Domain, what: string): Lease {
  checkFormat(fields, what);
  return {
    domain: of,
    token: token(fields, 'token', what),
    requestId: requestId(fields, 'requestId', what),
    holder: name(fields, 'holder', what),
    metadata: readMetadata(fields, what),
    ttlMs: positive(fields, 'ttlMs', what),
    grantedAtUnixMs: integer(fields, 'grantedAtUnixMs', what),
    owner: text(fields, 'owner', what),
    version: integer(fields, 'version', what),
    checkpointLeftMs: has(fields, 'checkpointLeftMs') ? integer(fields, 'checkpointLeftMs', what) : undefined,
  };
}

function finishedFields(request: FinishedRequest): Fields {
  return {
    requestId: request.requestId,
    domain: request.domain,
    finishedAt: uint64(request.finishedAt, 'finishedAt'),
    token: request.token === undefined ? undefined : uint64(request.token, 'token'),
    reason: enumNumber(FINISH_REASONS, request.reason),
    by: wellFormed(request.by, 'by'),
    note: wellFormed(request.note, 'note'),
    owner: wellFormed(request.owner, 'owner'),
    asked:
      request.asked === undefined
        ? undefined
        : { ttlMs: uint32(request.asked.ttlMs, 'ttlMs'), holder: wellFormed(request.asked.holder, 'holder') },
  };
}

function readFinished(fields: Fields, what: string): FinishedRequest {
  return {
    requestId: requestId(fields, 'requestId', what),
    domain: domain(fields, 'domain', what),
    finishedAt: token(fields, 'finishedAt', what),
    token: has(fields, 'token') ? token(fields, 'token', what) : undefined,
    reason: enumName(FINISH_REASONS, fields, 'reason', what),
    by: text(fields, 'by', what),
    note: text(fields, 'note', what),
    owner: text(fields, 'owner', what),
    asked: has(fields, 'asked') ? readAsked(part(fields, 'asked', what), what) : undefined,
  };
}

function readAsked(fields: Fields, what: string): NonNullable<FinishedRequest['asked']> {
  return { ttlMs: positive(fields, 'ttlMs', what), holder: name(fields, 'holder', what) };
}
