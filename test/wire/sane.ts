/** What every decoded value must be, whatever its type: a second, independent statement of the rules of fields. */
import { expect } from 'vitest';

const HEX_128 = /^[0-9a-f]{32}$/;
const FORMS: Readonly<Record<string, RegExp>> = {
  requestId: /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/,
  node: /^[A-Za-z0-9._-]{1,63}$/,
  leader: /^[A-Za-z0-9._-]{1,63}$/,
  directory: HEX_128,
  boot: HEX_128,
  incarnation: /^([0-9a-f]{32})?$/,
  // A slot has a number of at most three digits without leading zeros.
  domain: /^(?=.{1,255}$)[A-Za-z0-9._~:@+=-]+(\/[A-Za-z0-9._~:@+=-]+)*(#(0|[1-9][0-9]{0,2}))?$/,
  after: /^$|^(?=.{1,255}$)[A-Za-z0-9._~:@+=-]+(\/[A-Za-z0-9._~:@+=-]+)*(#(0|[1-9][0-9]{0,2}))?$/,
};

/**
 * Fails unless all numbers are safe integers from 0 on, texts and names have their form, metadata its order, entries
 * their places. `texts` false: texts that are only shown may hold anything.
 */
export function expectSane(value: unknown, texts: boolean, key = ''): void {
  if (typeof value === 'number') {
    expect(Number.isSafeInteger(value) && value >= 0, `${key} ${value}`).toBe(true);
  } else if (typeof value === 'string') {
    const form = FORMS[key];
    if (form !== undefined) expect(value, key).toMatch(form);
    // The message of a failure is for people only.
    else if (texts && key !== 'message') {
      expect(value.isWellFormed() && !value.includes('\ufffd'), `${key} ${JSON.stringify(value)}`).toBe(true);
    }
  } else if (Array.isArray(value)) {
    for (const element of value) expectSane(element, texts, key === 'metadata' ? '' : key);
    if (key === 'metadata') expectSorted(value as [string, string][]);
  } else if (typeof value === 'object' && value !== null && !(value instanceof Uint8Array)) {
    for (const [name, part] of Object.entries(value)) expectSane(part, texts, name);
    expectConsecutive(value);
  }
}

interface Placed {
  /** Of an Append. */
  readonly prev?: { readonly index: number };
  /** Of a log block. */
  readonly first?: number;
  readonly entries?: readonly { readonly index: number }[];
}

function expectConsecutive({ prev, first, entries }: Placed): void {
  const start = prev === undefined ? first : prev.index + 1;
  if (start === undefined || entries === undefined) return;
  for (const [at, { index }] of entries.entries()) if (index !== start + at) expect(index).toBe(start + at);
}

function expectSorted(pairs: readonly (readonly [string, string])[]): void {
  let before: string | undefined;
  for (const [key] of pairs) {
    if (before !== undefined && key <= before) expect.fail(`metadata has ${key} behind ${before}`);
    before = key;
  }
}
