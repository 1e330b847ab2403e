/** Greatest length of a domain in bytes. Domains are ASCII, so this is also the number of characters. */
export const MAX_DOMAIN_BYTES = 255;

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
