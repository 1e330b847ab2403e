import type { Domain } from './ids.js';

/** Greatest length of a domain in bytes. Domains are ASCII, so this is also the number of characters. */
export const MAX_DOMAIN_BYTES = 255;

/** Greatest number of slots of a counting name. */
export const MAX_SLOTS = 1_000;
/** Greatest length of a counting name in bytes: its slots have eight more at most. */
export const MAX_COUNTING_NAME_BYTES = MAX_DOMAIN_BYTES - 8;

const SLOT = /^([^#]*)#(0|[1-9][0-9]{0,2})$/;
const SEGMENTS = /^[A-Za-z0-9._~:@+=-]+(?:\/[A-Za-z0-9._~:@+=-]+)*$/;

/**
 * What is wrong with `text` as the name of a domain, or undefined when nothing is.
 * 1–255 bytes, segments of `[A-Za-z0-9._~:@+=-]` separated by single `/`; `#` is reserved for slots (design 1).
 */
export function domainFault(text: string): string | undefined {
  if (text.length === 0) return 'must not be empty';
  if (text.length > MAX_DOMAIN_BYTES) return `has ${text.length} bytes; at most ${MAX_DOMAIN_BYTES} are allowed`;
  if (!SEGMENTS.test(text)) return 'must be segments of [A-Za-z0-9._~:@+=-] separated by single slashes';
  return undefined;
}

/**
 * What is wrong with `text` as the prefix of a quota, or undefined when some domain can begin so; '' is that of all. It has
 * no `#`: slots count with their name.
 */
export function prefixFault(text: string): string | undefined {
  if (text === '') return undefined;
  // A prefix ends anywhere, also behind a slash: with one more letter it has to be a domain.
  return domainFault(text.length < MAX_DOMAIN_BYTES && text.endsWith('/') ? `${text}x` : text);
}

/** As {@link domainFault} for what a lease may be of: a domain, or a slot `name#k` of a counting name (F12). */
export function leasedDomainFault(text: string): string | undefined {
  const slot = SLOT.exec(text);
  if (slot?.[1] === undefined) return domainFault(text);
  if (slot[1].length > MAX_COUNTING_NAME_BYTES) {
    return `is a slot of a name of ${slot[1].length} bytes; at most ${MAX_COUNTING_NAME_BYTES} are allowed`;
  }
  return domainFault(slot[1]);
}

/** The name and number of a slot; undefined for a domain that is none. */
export function slotOf(domain: Domain): { readonly name: Domain; readonly number: number } | undefined {
  const mark = domain.lastIndexOf('#');
  if (mark < 0) return undefined;
  return { name: domain.slice(0, mark) as Domain, number: Number(domain.slice(mark + 1)) };
}

/** What is waited for where `domain` is leased: itself, or the counting name of a slot. */
export function nameOf(domain: Domain): Domain {
  return slotOf(domain)?.name ?? domain;
}
