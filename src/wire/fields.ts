/**
 * Reads the parts of a decoded message strictly. Each function returns a checked value or throws `CorruptBytes` that
 * names the message (`what`) and the field.
 */
import { domainFault, leasedDomainFault, MAX_SLOTS } from '../base/domain.js';
import type { BootId, DirectoryId, Domain, Incarnation, NodeId, RequestId } from '../base/ids.js';
import { isHexId, isNodeId, parseRequestId } from '../base/ids.js';
import type { Revision } from '../base/revision.js';
import { assert } from '../base/assert.js';
import { CorruptBytes } from './corrupt.js';
import { fromWire } from './numbers.js';
import { FORMAT } from './proto.js';
import type { Fields } from './proto.js';

const REPLACEMENT = '\ufffd';

/** Refuses a record without a format, and one of a newer format. */
export function checkFormat(fields: Fields, what: string): void {
  const format = integer(fields, 'format', what);
  if (format === 0) throw new CorruptBytes(what, 'has no format version');
  if (format > FORMAT) {
    throw new CorruptBytes(what, `has format ${format}, this version reads up to ${FORMAT}: start a newer version`);
  }
}

/** True when an optional field or a message field was on the wire. */
export function has(fields: Fields, field: string): boolean {
  return Object.hasOwn(fields, field);
}

/** An integer from 0 to 2^53 − 1. */
export function integer(fields: Fields, field: string, what: string): number {
  return fromWire(fields[field], what, field);
}

/** An integer from 1 to 2^53 − 1. */
export function positive(fields: Fields, field: string, what: string): number {
  const value = integer(fields, field, what);
  if (value === 0) throw new CorruptBytes(what, `${field} is 0`);
  return value;
}

/** A revision, or 0 where "none" is allowed. */
export function revision(fields: Fields, field: string, what: string): Revision {
  return integer(fields, field, what) as Revision;
}

/** The revision of a grant: never 0. */
export function token(fields: Fields, field: string, what: string): Revision {
  return positive(fields, field, what) as Revision;
}

/** True or false. */
export function flag(fields: Fields, field: string, what: string): boolean {
  const value = fields[field];
  if (typeof value !== 'boolean') throw new CorruptBytes(what, `${field} is no truth value`);
  return value;
}

/** Text of any length. Bytes that were no UTF-8 show as U+FFFD or lone surrogates, and two different names must never become one. */
export function text(fields: Fields, field: string, what: string): string {
  const value = anyText(fields, field, what);
  if (!isClean(value)) throw new CorruptBytes(what, `${field} is not valid UTF-8`);
  return value;
}

/** Text for people, where a damaged character does no harm. */
export function anyText(fields: Fields, field: string, what: string): string {
  const value = fields[field];
  if (typeof value !== 'string') throw new CorruptBytes(what, `${field} is no text`);
  return value;
}

/** Text of at least one character. */
export function name(fields: Fields, field: string, what: string): string {
  const value = text(fields, field, what);
  if (value === '') throw new CorruptBytes(what, `${field} is empty`);
  return value;
}

/** The name of a member. */
export function nodeId(fields: Fields, field: string, what: string): NodeId {
  const value = text(fields, field, what);
  if (!isNodeId(value)) throw new CorruptBytes(what, `${field} '${value}' is no node id`);
  return value;
}

/** The identity of a data directory. */
export function directoryId(fields: Fields, field: string, what: string): DirectoryId {
  return hexId(fields, field, what) as DirectoryId;
}

/** The identity of a history. */
export function incarnation(fields: Fields, field: string, what: string): Incarnation {
  return hexId(fields, field, what) as Incarnation;
}

/** The identity of a run of a process. */
export function bootId(fields: Fields, field: string, what: string): BootId {
  return hexId(fields, field, what) as BootId;
}

/** A request id in its stored form. */
export function requestId(fields: Fields, field: string, what: string): RequestId {
  const value = text(fields, field, what);
  const id = parseRequestId(value);
  if (id !== value) throw new CorruptBytes(what, `${field} '${value}' is no request id`);
  return id;
}

/** A number of slots: 1 for an exclusive domain. */
export function slotCount(fields: Fields, field: string, what: string): number {
  const value = positive(fields, field, what);
  if (value > MAX_SLOTS) throw new CorruptBytes(what, `${field} is ${value}; at most ${MAX_SLOTS} are allowed`);
  return value;
}

/** A checked ownership domain or counting name. */
export function domain(fields: Fields, field: string, what: string): Domain {
  return checkedDomain(fields, field, what, domainFault);
}

/** What a lease may be of: a domain, or a slot of a counting name. */
export function leasedDomain(fields: Fields, field: string, what: string): Domain {
  return checkedDomain(fields, field, what, leasedDomainFault);
}

function checkedDomain(
  fields: Fields,
  field: string,
  what: string,
  faultOf: (text: string) => string | undefined,
): Domain {
  const value = anyText(fields, field, what);
  const fault = faultOf(value);
  if (fault !== undefined) throw new CorruptBytes(what, `${field} ${fault}`);
  return value as Domain;
}

/** Request ids in order; none when they were not on the wire. */
export function requestIds(fields: Fields, field: string, what: string): readonly RequestId[] {
  const value = fields[field];
  if (!Array.isArray(value)) throw new CorruptBytes(what, `${field} is no list`);
  const elements: readonly unknown[] = value;
  return elements.map((element) => requestId({ [field]: element }, field, what));
}

/** Bytes; empty when they were not on the wire. */
export function bytes(fields: Fields, field: string, what: string): Uint8Array {
  const value = fields[field];
  // An absent field is an empty array, an empty one a Buffer.
  if (Array.isArray(value) || (value instanceof Uint8Array && value.length === 0)) return new Uint8Array(0);
  if (value instanceof Uint8Array) return value;
  throw new CorruptBytes(what, `${field} is no bytes`);
}

/** A part that must be there. */
export function part(fields: Fields, field: string, what: string): Fields {
  const value = fields[field];
  if (!isFields(value)) throw new CorruptBytes(what, `${field} is missing`);
  return value;
}

/** Parts in order; none when they were not on the wire. */
export function parts(fields: Fields, field: string, what: string): readonly Fields[] {
  const value = fields[field];
  if (!Array.isArray(value)) throw new CorruptBytes(what, `${field} is no list`);
  // Array.isArray says any[]; each element is looked at before use.
  const elements: readonly unknown[] = value;
  for (const element of elements)
    if (!isFields(element)) throw new CorruptBytes(what, `${field} is no list of messages`);
  return elements as readonly Fields[];
}

/** Which member of a oneof was set. */
export function variant(fields: Fields, oneof: string, what: string): string {
  const value = fields[oneof];
  if (typeof value !== 'string')
    throw new CorruptBytes(what, `${oneof} is not set, or is of a kind that this version does not know`);
  return value;
}

/**
 * The names of an enumeration in the program, in the order of their numbers from 1 on; 0 is "unspecified" in every
 * enumeration and is never written.
 */
export type Names<T extends string> = readonly T[];

/** The number on the wire. */
export function enumNumber<T extends string>(names: Names<T>, value: T): number {
  const at = names.indexOf(value);
  assert(at >= 0, `'${value}' has no number on the wire`);
  return at + 1;
}

/** The name of the number on the wire; 0 and unknown numbers are refused. */
export function enumName<T extends string>(names: Names<T>, fields: Fields, field: string, what: string): T {
  const number = integer(fields, field, what);
  const value = names[number - 1];
  if (value === undefined) throw new CorruptBytes(what, `${field} ${number} is not known to this version`);
  return value;
}

/** `value` if it is well formed: a lone surrogate would come back as another text. A failed assertion otherwise. */
export function wellFormed(value: string, what: string): string {
  assert(isClean(value), `${what} is not well-formed text`);
  return value;
}

function isClean(value: string): boolean {
  return value.isWellFormed() && !value.includes(REPLACEMENT);
}

function hexId(fields: Fields, field: string, what: string): string {
  const value = text(fields, field, what);
  if (!isHexId(value)) throw new CorruptBytes(what, `${field} '${value}' is not 32 hex digits`);
  return value;
}

function isFields(value: unknown): value is Fields {
  return typeof value === 'object' && value !== null && !(value instanceof Uint8Array);
}
