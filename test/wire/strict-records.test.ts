/** What strict decoders of the state table's records refuse; see strict.test.ts for everything else. */
import { describe, expect, it } from 'vitest';
import { AssertionFailed } from '../../src/base/assert.js';
import type { Domain, RequestId } from '../../src/base/ids.js';
import type { Revision } from '../../src/base/revision.js';
import type { Lease, RecordKey, StateRecord } from '../../src/lease/types.js';
import { CorruptBytes } from '../../src/wire/corrupt.js';
import { encodeFields, messageType } from '../../src/wire/proto.js';
import { decodeStateRecord, encodeStateRecord, recordKey } from '../../src/wire/state.js';

const ID = '123e4567-e89b-42d3-a456-426614174000' as RequestId;
const ID_HEX = Buffer.from(ID).toString('hex');
const A = 'a' as Domain;
const lease: Lease = {
  domain: A,
  token: 1_796_000_000_000_041 as Revision,
  requestId: ID,
  holder: 'h',
  metadata: [['k', 'v']],
  ttlMs: 15_000,
  coolDownMs: 6_000,
  grantedAtUnixMs: 1_796_000_000_000,
  owner: '',
  principal: 'p',
  version: 2,
  checkpointLeftMs: 7_000,
};
const SINCE = 5 as Revision;
/** The fields of a waiter's record. */
const WAITS = {
  ...{ format: 1, domain: 'a', requestId: ID, holder: 'h', ttlMs: 1, waitMs: 9, slots: 1, principal: 'p' },
  ...{ queuedAtUnixMs: 0, coolDownMs: 0, owner: '', metadata: [] },
};

/** The bytes of a message whose `fields` no encoder would write. */
const made = (name: string, fields: object): Uint8Array => encodeFields(messageType(name), { ...fields });
const hex = (bytes: Uint8Array): string => Buffer.from(bytes).toString('hex');
const unhex = (text: string): Uint8Array => Uint8Array.from(Buffer.from(text, 'hex'));

describe('a state record', () => {
  it('has a key of one tag byte and the name, so that keys sort as the names do', () => {
    const keys = ['a', 'a/b', 'a0', 'b'].map((domain) => hex(recordKey({ type: 'domain', domain: domain as Domain })));
    expect(keys).toEqual(['6461', '64612f62', '646130', '6462']);
    const numbers = [1, 255, 256, 2 ** 32 - 1, 2 ** 32, 2 ** 53 - 1];
    const ordered = numbers.map((n) => hex(recordKey({ type: 'finished', lastRevision: n as Revision })));
    expect(ordered).toEqual([...ordered].sort());
    expect(ordered[5]).toBe('66001fffffffffffff');
    expect(keys.every((key) => key < (ordered[0] ?? ''))).toBe(true);
  });

  it.each(['', '64', '6423', '65ff', '66', '660000000000000000', '660020000000000000', '6600000000000000010'])(
    'under the key %s is refused',
    (key) => {
      expect(() => decodeStateRecord(unhex(key), new Uint8Array(0))).toThrow(CorruptBytes);
    },
  );

  it('of finished requests must end where its key says, in order', () => {
    const finished = (finishedAt: number): object => ({ requestId: ID, domain: 'a', finishedAt, reason: 2 });
    const key = recordKey({ type: 'finished', lastRevision: 7 as Revision });
    const value = (...at: number[]): Uint8Array => made('FinishedRecord', { format: 1, requests: at.map(finished) });
    expect(decodeStateRecord(key, value(5, 7))).toMatchObject({ lastRevision: 7 });
    for (const wrong of [value(), value(5), value(7, 5, 7), value(8)]) {
      expect(() => decodeStateRecord(key, wrong)).toThrow(CorruptBytes);
    }
    const unknown = made('FinishedRecord', { format: 1, requests: [{ ...finished(7), reason: 7 }] });
    expect(() => decodeStateRecord(key, unknown)).toThrow(/reason 7 is not known/);
    const unset = made('FinishedRecord', { format: 1, requests: [{ ...finished(7), reason: 0 }] });
    expect(() => decodeStateRecord(key, unset)).toThrow(/reason 0 is not known/);
  });

  it.each<[string, RecordKey, string, object]>([
    ['waiter without a wait', { type: 'waiter', queuedAt: SINCE }, 'WaiterRecord', { ...WAITS, waitMs: 0 }],
    ['waiter without slots', { type: 'waiter', queuedAt: SINCE }, 'WaiterRecord', { ...WAITS, slots: 0 }],
    ['waiter for too many slots', { type: 'waiter', queuedAt: SINCE }, 'WaiterRecord', { ...WAITS, slots: 1_001 }],
    ['waiter without a principal', { type: 'waiter', queuedAt: SINCE }, 'WaiterRecord', { ...WAITS, principal: '' }],
    ['waiter for a slot', { type: 'waiter', queuedAt: SINCE }, 'WaiterRecord', { ...WAITS, domain: 'a#1' }],
    ['waiter without an id', { type: 'waiter', queuedAt: SINCE }, 'WaiterRecord', { ...WAITS, requestId: '' }],
    ['waiter without a format', { type: 'waiter', queuedAt: SINCE }, 'WaiterRecord', { ...WAITS, format: 0 }],
    ['cool-down of no time', { type: 'coolDown', domain: A }, 'CoolDownRecord', { format: 1, since: 5, ms: 0 }],
    ['cool-down since nothing', { type: 'coolDown', domain: A }, 'CoolDownRecord', { format: 1, since: 0, ms: 5 }],
    ['cool-down of a newer format', { type: 'coolDown', domain: A }, 'CoolDownRecord', { format: 2, since: 5, ms: 5 }],
    [
      'counting name of no slots',
      { type: 'counting', domain: A },
      'CountingRecord',
      { format: 1, slots: 0, principal: 'p' },
    ],
    [
      'counting name of too many',
      { type: 'counting', domain: A },
      'CountingRecord',
      { format: 1, slots: 1_001, principal: 'p' },
    ],
    ['counting name of nobody', { type: 'counting', domain: A }, 'CountingRecord', { format: 1, slots: 2 }],
    ['counting name without a format', { type: 'counting', domain: A }, 'CountingRecord', { slots: 2, principal: 'p' }],
  ])('of a %s is refused', (_name, key, message, fields) => {
    expect(() => decodeStateRecord(recordKey(key), made(message, fields))).toThrow(CorruptBytes);
  });

  it('of each new kind that is as it should be is read', () => {
    const read = (key: RecordKey, message: string, fields: object): unknown =>
      decodeStateRecord(recordKey(key), made(message, fields));
    expect(read({ type: 'waiter', queuedAt: SINCE }, 'WaiterRecord', WAITS)).toMatchObject({ waiter: { waitMs: 9 } });
    const coolDown = { format: 1, since: 5, ms: 6 };
    expect(read({ type: 'coolDown', domain: 'a#7' as Domain }, 'CoolDownRecord', coolDown)).toEqual({
      type: 'coolDown',
      domain: 'a#7',
      coolDown: { domain: 'a#7', since: 5, ms: 6 },
    });
    const counting = { format: 1, slots: 2, principal: 'p' };
    expect(read({ type: 'counting', domain: A }, 'CountingRecord', counting)).toEqual({
      type: 'counting',
      domain: 'a',
      counting: { name: 'a', slots: 2, principal: 'p' },
    });
  });

  it('of a lease of a slot is read, of a counting name that is a slot is refused', () => {
    const slot = { ...lease, domain: 'a#999' as Domain };
    const { key, value } = encodeStateRecord({ type: 'domain', domain: slot.domain, lease: slot });
    expect(decodeStateRecord(key, value)).toEqual({ type: 'domain', domain: 'a#999', lease: slot });
    // 'n', then a#1.
    expect(() =>
      decodeStateRecord(unhex('6e612331'), made('CountingRecord', { format: 1, slots: 2, principal: 'p' })),
    ).toThrow(CorruptBytes);
  });

  it('has a tag of its own for each kind, so no two records share a key', () => {
    const keys: RecordKey[] = [
      { type: 'domain', domain: A },
      { type: 'coolDown', domain: A },
      { type: 'counting', domain: A },
      { type: 'waiter', queuedAt: SINCE },
      { type: 'finished', lastRevision: SINCE },
    ];
    expect(keys.map((key) => hex(recordKey(key)))).toEqual([
      '6461',
      '6361',
      '6e61',
      '770000000000000005',
      '660000000000000005',
    ]);
  });

  it('is not written under a key that is not its own', () => {
    const { requestId, holder, metadata, ttlMs, owner, principal } = lease;
    const asks = { domain: A, requestId, holder, metadata, ttlMs, owner, principal, coolDownMs: 0, slots: 1 };
    const waiter = { ...asks, queuedAt: SINCE, waitMs: 9, queuedAtUnixMs: 0 };
    const b = 'b' as Domain;
    for (const record of [
      { type: 'waiter', queuedAt: 6 as Revision, waiter },
      { type: 'coolDown', domain: b, coolDown: { domain: A, since: SINCE, ms: 5 } },
      { type: 'counting', domain: b, counting: { name: A, slots: 2, principal: 'p' } },
    ] satisfies StateRecord[]) {
      expect(() => encodeStateRecord(record)).toThrow(AssertionFailed);
    }
    const wrong: StateRecord = { type: 'domain', domain: 'b' as Domain, lease };
    expect(() => encodeStateRecord(wrong)).toThrow(AssertionFailed);
    const finished: StateRecord = { type: 'finished', lastRevision: 3 as Revision, requests: [] };
    expect(() => encodeStateRecord(finished)).toThrow(AssertionFailed);
  });
});

describe('the formats of waiters, cool-downs and counting names on disk', () => {
  it('are what they were at the first release', () => {
    const { requestId, holder, metadata, ttlMs, owner, principal } = lease;
    const asks = { domain: A, requestId, holder, metadata, ttlMs, owner, principal, coolDownMs: 6, slots: 2 };
    const waiter = { ...asks, queuedAt: SINCE, waitMs: 9, queuedAtUnixMs: 7 };
    const values = (
      [
        { type: 'waiter', queuedAt: SINCE, waiter },
        { type: 'coolDown', domain: A, coolDown: { domain: A, since: SINCE, ms: 6 } },
        { type: 'counting', domain: A, counting: { name: A, slots: 2, principal: 'p' } },
      ] satisfies StateRecord[]
    ).map((record) => hex(encodeStateRecord(record).value));
    expect(values).toEqual([
      `08011201611a24${ID_HEX}2201682a060a016b12017630987538074200480950065802620170`,
      '080110051806',
      '080110021a0170',
    ]);
  });
});
