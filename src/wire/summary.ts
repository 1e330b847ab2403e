/** The part of the state that every cut writes (`record.proto`, StateSummary). */
import type { StateSummary } from '../lease/types.js';
import { checkFormat, flag, part, revision } from './fields.js';
import { uint64 } from './numbers.js';
import { decodeFields, encodeFields, FORMAT, messageType } from './proto.js';
import type { Fields } from './proto.js';
import { limitsFields, readLimits } from './state-limits.js';

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
