import { digestBytes, digestText } from '../base/digest.js';
import { encodeUtf8 } from '../base/utf8.js';
import type { Raft } from './state.js';

/**
 * Digest of everything that influences what the core does next, as 16 hex digits. Equal runs give equal chains of it;
 * a difference is a leak of chance, time or order (research 3.2).
 */
export function hashState(raft: Raft): string {
  return digestText(digestBytes(encodeUtf8(canonical(raft))));
}

/** One text for one state: keys of objects sorted, maps in order of key, bytes as their digest. */
function canonical(value: unknown): string {
  if (value instanceof Uint8Array) return `#${value.length}:${digestText(digestBytes(value))}`;
  if (value instanceof Map) return canonical([...value].sort(([left], [right]) => (left < right ? -1 : 1)));
  if (Array.isArray(value)) return `[${value.map(canonical).join()}]`;
  if (typeof value !== 'object' || value === null) return value === undefined ? '-' : JSON.stringify(value);
  const parts = Object.entries(value).filter(([, part]) => part !== undefined);
  parts.sort(([left], [right]) => (left < right ? -1 : 1));
  return `{${parts.map(([name, part]) => `${name}=${canonical(part)}`).join()}}`;
}
