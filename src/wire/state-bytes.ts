/** The bytes of the records that most entries change (`record.proto`); the others are in `state.ts`. */
import type { Asked, FinishedRequest, Lease } from '../lease/types.js';
import { enumNumber, wellFormed } from './fields.js';
import type { Names } from './fields.js';
import { FieldWriter } from './field-writer.js';
import { writeMetadata } from './metadata.js';
import { uint32, uint64 } from './numbers.js';
import { FORMAT } from './proto.js';

/** In the order of their numbers on the wire. */
export const FINISH_REASONS: Names<FinishedRequest['reason']> = [
  'expired',
  'released',
  'withdrawn',
  'force_released',
  'earlier_history',
  'left_queue',
];

const writer = new FieldWriter();

/** A DomainRecord. */
export function leaseBytes(lease: Lease): Uint8Array {
  writer.clear();
  writer.integer(1, FORMAT);
  writer.integer(2, uint64(lease.token, 'token'));
  writer.text(3, lease.requestId);
  writer.text(4, wellFormed(lease.holder, 'holder'));
  writeMetadata(writer, 5, lease.metadata);
  writer.integer(6, uint32(lease.ttlMs, 'ttlMs'));
  writer.integer(7, uint64(lease.grantedAtUnixMs, 'grantedAtUnixMs'));
  writer.text(8, wellFormed(lease.owner, 'owner'));
  writer.integer(9, uint64(lease.version, 'version'));
  if (lease.checkpointLeftMs !== undefined) writer.integer(10, uint64(lease.checkpointLeftMs, 'checkpointLeftMs'));
  writer.integer(11, uint32(lease.coolDownMs, 'coolDownMs'));
  writer.text(12, wellFormed(lease.principal, 'principal'));
  return writer.take();
}

/** A FinishedRecord. */
export function finishedBytes(requests: readonly FinishedRequest[]): Uint8Array {
  writer.clear();
  writer.integer(1, FORMAT);
  for (const request of requests) {
    const one = writer.begin(2);
    writer.text(1, request.requestId);
    writer.text(2, request.domain);
    writer.integer(3, uint64(request.finishedAt, 'finishedAt'));
    if (request.token !== undefined) writer.integer(4, uint64(request.token, 'token'));
    writer.integer(5, enumNumber(FINISH_REASONS, request.reason));
    writer.text(6, wellFormed(request.by, 'by'));
    writer.text(7, wellFormed(request.note, 'note'));
    writer.text(8, wellFormed(request.owner, 'owner'));
    if (request.asked !== undefined) writeAsked(9, request.asked);
    writer.end(one);
  }
  return writer.take();
}

function writeAsked(field: number, { ttlMs, holder, coolDownMs, slots }: Asked): void {
  const asked = writer.begin(field);
  writer.integer(1, uint32(ttlMs, 'ttlMs'));
  writer.text(2, wellFormed(holder, 'holder'));
  writer.integer(3, uint32(coolDownMs, 'coolDownMs'));
  writer.integer(4, uint32(slots, 'slots'));
  writer.end(asked);
}
