/**
 * Records of the state table ↔ keys and values (`record.proto`).
 * A key is one tag byte and the name, so the records of one kind lie together and sort by their names as bytes.
 */
import { assert } from '../base/assert.js';
import { domainFault, leasedDomainFault } from '../base/domain.js';
import type { Domain } from '../base/ids.js';
import type { Revision } from '../base/revision.js';
import { encodeUtf8 } from '../base/utf8.js';
import type { Asked, CoolDown, FinishedRequest, Lease, RecordKey, StateRecord, Waiter } from '../lease/types.js';
import { CorruptBytes } from './corrupt.js';
import {
  checkFormat,
  domain,
  enumName,
  has,
  integer,
  leasedDomain,
  name,
  part,
  parts,
  positive,
  requestId,
  slotCount,
  text,
  token,
  wellFormed,
} from './fields.js';
import { metadataFields, readMetadata } from './metadata.js';
import { uint32, uint64 } from './numbers.js';
import { decodeFields, encodeFields, FORMAT, messageType } from './proto.js';
import type { Fields } from './proto.js';
import { FINISH_REASONS, finishedBytes, leaseBytes } from './state-bytes.js';

const DOMAIN_RECORD = messageType('DomainRecord');
const WAITER_RECORD = messageType('WaiterRecord');
const COOL_DOWN_RECORD = messageType('CoolDownRecord');
const COUNTING_RECORD = messageType('CountingRecord');
const FINISHED_RECORD = messageType('FinishedRecord');

/** First bytes of the keys: 'd', 'w', 'c', 'n' and 'f'. */
const TAGS = { domain: 0x64, waiter: 0x77, coolDown: 0x63, counting: 0x6e, finished: 0x66 } as const;

/** The bytes that name a record in the table. */
export function recordKey(key: RecordKey): Uint8Array {
  switch (key.type) {
    case 'domain':
    case 'coolDown':
    case 'counting': {
      const bytes = encodeUtf8(key.domain);
      const out = new Uint8Array(1 + bytes.length);
      out[0] = TAGS[key.type];
      out.set(bytes, 1);
      return out;
    }
    case 'waiter':
      return revisionKey(TAGS.waiter, key.queuedAt);
    case 'finished':
      return revisionKey(TAGS.finished, key.lastRevision);
  }
}

/** A record as key and value. */
export function encodeStateRecord(record: StateRecord): { key: Uint8Array; value: Uint8Array } {
  return { key: recordKey(record), value: encodeValue(record) };
}

function encodeValue(record: StateRecord): Uint8Array {
  switch (record.type) {
    case 'domain': {
      const { domain: key, lease } = record;
      assert(key === lease.domain, `record of ${key} holds a lease of ${lease.domain}`);
      return leaseBytes(lease);
    }
    case 'waiter': {
      const { queuedAt, waiter } = record;
      assert(queuedAt === waiter.queuedAt, `record of waiter ${queuedAt} holds one of ${waiter.queuedAt}`);
      return encodeFields(WAITER_RECORD, waiterFields(waiter));
    }
    case 'coolDown': {
      const { domain: key, coolDown } = record;
      assert(key === coolDown.domain, `record of cool-down ${key} holds one of ${coolDown.domain}`);
      const fields = { format: FORMAT, since: uint64(coolDown.since, 'since'), ms: uint64(coolDown.ms, 'ms') };
      return encodeFields(COOL_DOWN_RECORD, fields);
    }
    case 'counting': {
      const { domain: key, counting } = record;
      assert(key === counting.name, `record of counting name ${key} holds ${counting.name}`);
      return encodeFields(COUNTING_RECORD, {
        format: FORMAT,
        slots: uint32(counting.slots, 'slots'),
        principal: wellFormed(counting.principal, 'principal'),
      });
    }
    case 'finished': {
      const last = record.requests.at(-1)?.finishedAt;
      assert(
        last === record.lastRevision,
        `finished requests end at ${last ?? 'none'}, the key says ${record.lastRevision}`,
      );
      return finishedBytes(record.requests);
    }
  }
}

/** The record under `key`. Throws {@link CorruptBytes}, also when key and value do not belong together. */
export function decodeStateRecord(key: Uint8Array, value: Uint8Array): StateRecord {
  const named = readKey(key);
  switch (named.type) {
    case 'domain': {
      const what = `record of domain ${named.domain}`;
      return { ...named, lease: readLease(decodeFields(DOMAIN_RECORD, value, what), named.domain, what) };
    }
    case 'waiter': {
      const what = `record of the waiter of ${named.queuedAt}`;
      return { ...named, waiter: readWaiter(decodeFields(WAITER_RECORD, value, what), named.queuedAt, what) };
    }
    case 'coolDown': {
      const what = `record of the cool-down of ${named.domain}`;
      return { ...named, coolDown: readCoolDown(decodeFields(COOL_DOWN_RECORD, value, what), named.domain, what) };
    }
    case 'counting': {
      const what = `record of counting name ${named.domain}`;
      const fields = decodeFields(COUNTING_RECORD, value, what);
      checkFormat(fields, what);
      return {
        ...named,
        counting: {
          name: named.domain,
          slots: slotCount(fields, 'slots', what),
          principal: name(fields, 'principal', what),
        },
      };
    }
    case 'finished':
      return readFinishedRecord(named, value);
  }
}

function readFinishedRecord(named: Extract<RecordKey, { readonly type: 'finished' }>, value: Uint8Array): StateRecord {
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

const KEY = 'key of a state record';

function readKey(key: Uint8Array): RecordKey {
  switch (key[0]) {
    case TAGS.domain:
      return { type: 'domain', domain: domainKey(key, leasedDomainFault) };
    case TAGS.coolDown:
      return { type: 'coolDown', domain: domainKey(key, leasedDomainFault) };
    case TAGS.counting:
      return { type: 'counting', domain: domainKey(key, domainFault) };
    case TAGS.waiter:
      return { type: 'waiter', queuedAt: readRevisionKey(key) };
    case TAGS.finished:
      return { type: 'finished', lastRevision: readRevisionKey(key) };
    case undefined:
    default:
      throw new CorruptBytes(KEY, 'is of no known kind');
  }
}

function domainKey(key: Uint8Array, faultOf: (text: string) => string | undefined): Domain {
  let text = '';
  for (const byte of key.subarray(1)) text += String.fromCharCode(byte);
  const fault = faultOf(text);
  if (fault !== undefined) throw new CorruptBytes(KEY, `domain ${fault}`);
  return text as Domain;
}

function revisionKey(tag: number, value: Revision): Uint8Array {
  const out = new Uint8Array(9);
  const view = new DataView(out.buffer);
  const number = uint64(value, 'revision');
  view.setUint8(0, tag);
  view.setUint32(1, Math.floor(number / 2 ** 32));
  view.setUint32(5, number >>> 0);
  return out;
}

function readRevisionKey(key: Uint8Array): Revision {
  if (key.length !== 9) throw new CorruptBytes(KEY, 'is of no known kind');
  const view = new DataView(key.buffer, key.byteOffset, key.byteLength);
  const number = view.getUint32(1) * 2 ** 32 + view.getUint32(5);
  if (number === 0 || number > Number.MAX_SAFE_INTEGER) throw new CorruptBytes(KEY, 'revision is 0 or above 2^53 - 1');
  return number as Revision;
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
    coolDownMs: integer(fields, 'coolDownMs', what),
    owner: text(fields, 'owner', what),
    principal: name(fields, 'principal', what),
    version: integer(fields, 'version', what),
    checkpointLeftMs: has(fields, 'checkpointLeftMs') ? integer(fields, 'checkpointLeftMs', what) : undefined,
  };
}

function waiterFields(waiter: Waiter): Fields {
  return {
    format: FORMAT,
    domain: waiter.domain,
    requestId: waiter.requestId,
    holder: wellFormed(waiter.holder, 'holder'),
    metadata: metadataFields(waiter.metadata),
    ttlMs: uint32(waiter.ttlMs, 'ttlMs'),
    queuedAtUnixMs: uint64(waiter.queuedAtUnixMs, 'queuedAtUnixMs'),
    owner: wellFormed(waiter.owner, 'owner'),
    waitMs: uint32(waiter.waitMs, 'waitMs'),
    coolDownMs: uint32(waiter.coolDownMs, 'coolDownMs'),
    slots: uint32(waiter.slots, 'slots'),
    principal: wellFormed(waiter.principal, 'principal'),
  };
}

function readWaiter(fields: Fields, queuedAt: Revision, what: string): Waiter {
  checkFormat(fields, what);
  return {
    domain: domain(fields, 'domain', what),
    queuedAt,
    requestId: requestId(fields, 'requestId', what),
    holder: name(fields, 'holder', what),
    metadata: readMetadata(fields, what),
    ttlMs: positive(fields, 'ttlMs', what),
    coolDownMs: integer(fields, 'coolDownMs', what),
    slots: slotCount(fields, 'slots', what),
    waitMs: positive(fields, 'waitMs', what),
    queuedAtUnixMs: integer(fields, 'queuedAtUnixMs', what),
    owner: text(fields, 'owner', what),
    principal: name(fields, 'principal', what),
  };
}

function readCoolDown(fields: Fields, of: Domain, what: string): CoolDown {
  checkFormat(fields, what);
  return { domain: of, since: token(fields, 'since', what), ms: positive(fields, 'ms', what) };
}

function readFinished(fields: Fields, what: string): FinishedRequest {
  return {
    requestId: requestId(fields, 'requestId', what),
    domain: leasedDomain(fields, 'domain', what),
    finishedAt: token(fields, 'finishedAt', what),
    token: has(fields, 'token') ? token(fields, 'token', what) : undefined,
    reason: enumName(FINISH_REASONS, fields, 'reason', what),
    by: text(fields, 'by', what),
    note: text(fields, 'note', what),
    owner: text(fields, 'owner', what),
    asked: has(fields, 'asked') ? readAsked(part(fields, 'asked', what), what) : undefined,
  };
}

function readAsked(fields: Fields, what: string): Asked {
  return {
    ttlMs: positive(fields, 'ttlMs', what),
    holder: name(fields, 'holder', what),
    coolDownMs: integer(fields, 'coolDownMs', what),
    slots: slotCount(fields, 'slots', what),
  };
}
