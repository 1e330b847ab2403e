import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { Call, ForwardableCall } from '../../src/base/api.js';
import { CorruptBytes } from '../../src/wire/corrupt.js';
import {
  decodeForwardedCall,
  decodeForwardedResult,
  encodeForwardedCall,
  encodeForwardedResult,
  FORWARDED_METHODS,
} from '../../src/wire/forward.js';
import { encodeFields, messageType } from '../../src/wire/proto.js';
import { encodeCall } from '../../src/wire/public.js';
import { forwardedCall, forwardedResult } from './arbitrary-forwards.js';

function damaged(bytes: Uint8Array, at: number, mask: number, length: number): Uint8Array {
  const copy = Uint8Array.from(bytes);
  if (copy.length > 0) copy[at % copy.length] = (copy[at % copy.length] ?? 0) ^ mask;
  return copy.subarray(0, length % (copy.length + 1));
}

describe('a forwarded call', () => {
  it('comes back as it went', () => {
    fc.assert(
      fc.property(forwardedCall, (forwarded) => {
        expect(decodeForwardedCall(encodeForwardedCall(forwarded))).toEqual(forwarded);
      }),
    );
  });

  it('keeps what is left of its time, rounded up, and of its hold, rounded down', () => {
    const base = { id: 1, term: 3, principal: { name: 'addr:::1', authenticated: false } };
    const get = { type: 'get', domain: 'a', freshness: 'local' } as ForwardableCall;
    const carried = (timeoutMs: number, holdMs: number): object =>
      decodeForwardedCall(encodeForwardedCall({ ...base, timeoutMs, holdMs, call: get }));
    expect(carried(10.25, 7.75)).toMatchObject({ timeoutMs: 11, holdMs: 7 });
    expect(carried(-3, -0.5)).toMatchObject({ timeoutMs: 0, holdMs: 0 });
  });

  it('is refused when the node before should have refused it', () => {
    const type = messageType('ForwardedCall');
    const bytes = (fields: object): Uint8Array =>
      encodeFields(type, { id: 1, principal: 'addr:x', authenticated: false, timeoutMs: 5, holdMs: 0, ...fields });
    const method = FORWARDED_METHODS.indexOf('get') + 1;
    const request = encodeCall({ type: 'get', domain: 'a//b', freshness: 'local' } as Call);
    expect(() => decodeForwardedCall(bytes({ method, request }))).toThrow(/forwarded get: domain must be segments/);
    expect(() => decodeForwardedCall(bytes({ method: 0, request }))).toThrow(CorruptBytes);
    expect(() => decodeForwardedCall(bytes({ method: 99, request }))).toThrow(CorruptBytes);
    const acquire = encodeCall({
      type: 'acquire',
      domain: 'a',
      requestId: '',
      holder: 'h',
      ttlMs: 5_000,
      waitMs: 0,
      metadata: [],
      coolDownMs: 0,
      slots: 1,
      seenRevision: 0,
    } as unknown as Call);
    expect(() => decodeForwardedCall(bytes({ method: 1, request: acquire }))).toThrow(/request_id is missing/);
  });

  it('damaged is refused or another call, and nothing else', () => {
    fc.assert(
      fc.property(forwardedCall, fc.nat(), fc.integer({ min: 0, max: 255 }), fc.nat(), (value, at, mask, length) => {
        try {
          const got = decodeForwardedCall(damaged(encodeForwardedCall(value), at, mask, length));
          expect(decodeForwardedCall(encodeForwardedCall(got))).toEqual(got);
        } catch (error) {
          expect(error).toBeInstanceOf(CorruptBytes);
        }
      }),
      { numRuns: 500 },
    );
  });
});

describe('a forwarded result', () => {
  it('comes back as it went', () => {
    fc.assert(
      fc.property(forwardedResult, (forwarded) => {
        expect(decodeForwardedResult(encodeForwardedResult(forwarded))).toEqual(forwarded);
      }),
    );
  });

  it('damaged is refused or another result, and nothing else', () => {
    fc.assert(
      fc.property(forwardedResult, fc.nat(), fc.integer({ min: 0, max: 255 }), fc.nat(), (value, at, mask, length) => {
        try {
          const got = decodeForwardedResult(damaged(encodeForwardedResult(value), at, mask, length));
          expect(got.id).toBeGreaterThanOrEqual(0);
        } catch (error) {
          expect(error).toBeInstanceOf(CorruptBytes);
        }
      }),
      { numRuns: 500 },
    );
  });
});
