/**
 * Pieces of a snapshot ↔ bytes with their own checksum: 4 bytes CRC-32C of the rest, most significant first, then a
 * SnapshotChunk (`peer.proto`). TLS and TCP check the way; this checks what was put in and taken out at its ends.
 */
import { crc32c } from '../base/digest.js';
import type { SnapshotChunk } from '../replica/types.js';
import { metaFields, readMeta } from './configuration.js';
import { CorruptBytes } from './corrupt.js';
import { bytes as bytesOf, checkFormat, has, integer, name, part, parts, wellFormed } from './fields.js';
import { uint64 } from './numbers.js';
import { decodeFields, encodeFields, FORMAT, messageType } from './proto.js';
import type { Fields } from './proto.js';
import { decodeStateRecord, encodeStateRecord } from './state.js';
import { readSummary, summaryFields } from './summary.js';

const CHUNK = messageType('SnapshotChunk');
const CRC_BYTES = 4;

/** A chunk with its checksum in front. */
export function encodeChunk(chunk: SnapshotChunk): Uint8Array {
  const body = encodeFields(CHUNK, {
    format: FORMAT,
    term: uint64(chunk.term, 'term'),
    request: uint64(chunk.request, 'request'),
    sequence: uint64(chunk.sequence, 'sequence'),
    meta: metaFields(chunk.meta),
    summary: summaryFields(chunk.summary),
    records: chunk.records.map(encodeStateRecord),
    total:
      chunk.total === undefined
        ? undefined
        : { count: uint64(chunk.total.count, 'count'), digest: wellFormed(chunk.total.digest, 'digest') },
  });
  const out = new Uint8Array(CRC_BYTES + body.length);
  new DataView(out.buffer).setUint32(0, crc32c(body));
  out.set(body, CRC_BYTES);
  return out;
}

/** Throws {@link CorruptBytes}, also when the checksum differs. */
export function decodeChunk(bytes: Uint8Array): SnapshotChunk {
  const what = 'snapshot chunk';
  if (bytes.length < CRC_BYTES) throw new CorruptBytes(what, 'is too short');
  const body = bytes.subarray(CRC_BYTES);
  const expected = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength).getUint32(0);
  if (crc32c(body) !== expected) throw new CorruptBytes(what, 'does not match its checksum');
  const fields = decodeFields(CHUNK, body, what);
  checkFormat(fields, what);
  return {
    term: integer(fields, 'term', what),
    request: integer(fields, 'request', what),
    sequence: integer(fields, 'sequence', what),
    meta: readMeta(part(fields, 'meta', what), what),
    summary: readSummary(part(fields, 'summary', what)),
    records: parts(fields, 'records', what).map((record) =>
      decodeStateRecord(bytesOf(record, 'key', what), bytesOf(record, 'value', what)),
    ),
    total: has(fields, 'total') ? readTotal(part(fields, 'total', what), what) : undefined,
  };
}

function readTotal(fields: Fields, what: string): NonNullable<SnapshotChunk['total']> {
  return { count: integer(fields, 'count', what), digest: name(fields, 'digest', what) };
}
