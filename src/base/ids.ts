/**
 * Branded ids: all are strings at run time, none can be mistaken for another at compile time.
 * Values enter through the functions below or through a decoder that has checked them.
 */

declare const brand: unique symbol;
/** `T` with a name that only the type checker sees. */
export type Brand<T, Name extends string> = T & { readonly [brand]: Name };

/** The configured name of a member: 1–63 characters of `[A-Za-z0-9._-]`. */
export type NodeId = Brand<string, 'NodeId'>;
/** Identity of a data directory: 32 lower-case hex digits, drawn when the directory is made. */
export type DirectoryId = Brand<string, 'DirectoryId'>;
/** Identity of one cluster history: 32 lower-case hex digits. Compared for equality only. */
export type Incarnation = Brand<string, 'Incarnation'>;
/** Identity of one run of a process: 32 lower-case hex digits. */
export type BootId = Brand<string, 'BootId'>;
/** The identity of one attempt to own: a UUID in text form, lower case. */
export type RequestId = Brand<string, 'RequestId'>;
/** A checked ownership domain, see `domain.ts`. */
export type Domain = Brand<string, 'Domain'>;

const NODE_ID = /^[A-Za-z0-9._-]{1,63}$/;
const HEX_128 = /^[0-9a-f]{32}$/;
const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/;

/** True when `text` may name a member. */
export function isNodeId(text: string): text is NodeId {
  return NODE_ID.test(text);
}

/** True for the text form of a directory id, incarnation or boot id. */
export function isHexId(text: string): boolean {
  return HEX_128.test(text);
}

/** The request id in its one stored form (lower case), or undefined when `text` is not a UUID. */
export function parseRequestId(text: string): RequestId | undefined {
  const lower = text.toLowerCase();
  return UUID.test(lower) ? (lower as RequestId) : undefined;
}
