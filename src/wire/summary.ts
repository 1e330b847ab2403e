/** The part of the state that every cut writes, and the state machine's limits in it (`record.proto`). */
import type { StateLimits, StateSummary } from '../lease/types.js';
import { checkFormat, flag, integer, part, parts, revision, text, wellFormed } from './fields.js';
import { uint32, uint64 } from './numbers.js';
import { decodeFields, encodeFields, FORMAT, messageType } from './proto.js';
import type { Fields } from './proto.js';

const SUMMARY = messageType('StateSummary');

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
  const { finishedRequests, queue, leasesPerPrincipal, waitersPerPrincipal, countingNames, prefixes } = limits;
  return {
    finishedRequests: uint32(finishedRequests, 'finishedRequests'),
    queue: uint32(queue, 'queue'),
    leasesPerPrincipal: uint32(leasesPerPrincipal, 'leasesPerPrincipal'),
    waitersPerPrincipal: uint32(waitersPerPrincipal, 'waitersPerPrincipal'),
    countingNames: uint32(countingNames, 'countingNames'),
    prefixes: prefixes.map(({ prefix, leases, waiters }) => ({
      prefix: wellFormed(prefix, 'prefix'),
      leases: uint32(leases, 'leases'),
      waiters: uint32(waiters, 'waiters'),
    })),
  };
}

/** The state machine's limits from a part of another message. */
export function readLimits(fields: Fields, what: string): StateLimits {
  return {
    finishedRequests: integer(fields, 'finishedRequests', what),
    queue: integer(fields, 'queue', what),
    leasesPerPrincipal: integer(fields, 'leasesPerPrincipal', what),
    waitersPerPrincipal: integer(fields, 'waitersPerPrincipal', what),
    countingNames: integer(fields, 'countingNames', what),
    prefixes: parts(fields, 'prefixes', what).map((quota) => ({
      prefix: text(quota, 'prefix', what),
      leases: integer(quota, 'leases', what),
      waiters: integer(quota, 'waiters', what),
    })),
  };
}
