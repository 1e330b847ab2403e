import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { Call } from '../../src/base/api.js';
import type { Domain, NodeId } from '../../src/base/ids.js';
import { decodeRequest, encodeRequest, encodeResponse } from '../../src/wire/public-messages.js';
import { parseRequest } from '../../src/wire/public-parse.js';
import { requestOf } from '../../src/wire/public-request.js';
import type { RequestMessages, WireHeader, WireRequest } from '../../src/wire/public-types.js';
import { UnexpectedResponse } from '../../src/wire/public-unexpected.js';
import { CLUSTER_SERVICE, encodeCall, LEASE_SERVICE, METHOD_OF } from '../../src/wire/public.js';
import { answer, call, header, LIMITS } from './arbitrary-answers.js';

const ID = '123e4567-e89b-42d3-a456-426614174000';

const ACQUIRE: RequestMessages['acquire'] = {
  domain: 'orders/eu',
  requestId: ID,
  holder: 'worker-1',
  ttlMs: 15_000,
  waitMs: 0,
  metadata: {},
  coolDownMs: 0,
  slots: 0,
  seenRevision: 0n,
};

/** The request as it is after the wire. */
function carried(request: WireRequest): WireRequest {
  const method = METHOD_OF[request.type];
  return method.requestDeserialize(method.requestSerialize(request));
}

function faults(request: WireRequest): readonly string[] {
  const parsed = parseRequest(carried(request), LIMITS);
  return 'faults' in parsed ? parsed.faults : [];
}

const acquireFaults = (fields: Partial<RequestMessages['acquire']>): readonly string[] =>
  faults({ type: 'acquire', message: { ...ACQUIRE, ...fields } });

describe('requests', () => {
  it('come back as the call that was made', () => {
    fc.assert(
      fc.property(call, (made: Call) => {
        expect(parseRequest(METHOD_OF[made.type].requestDeserialize(encodeCall(made)), LIMITS)).toEqual({ ok: made });
        expect(carried(requestOf(made)).type).toBe(made.type);
      }),
    );
  });

  it('of every kind are read from noise without an exception', () => {
    const methods = Object.values(METHOD_OF);
    fc.assert(
      fc.property(fc.constantFrom(...methods), fc.uint8Array({ maxLength: 100 }), (method, bytes) => {
        const parsed = parseRequest(method.requestDeserialize(Buffer.from(bytes)), LIMITS);
        expect('ok' in parsed || parsed.faults.length > 0).toBe(true);
      }),
      { numRuns: 500 },
    );
  });

  it('that are no message are one fault', () => {
    expect(parseRequest(METHOD_OF.acquire.requestDeserialize(Buffer.from([0xff])), LIMITS)).toEqual({
      faults: ['the bytes are no request message of acquire'],
    });
  });

  it('list every fault at once, each with its field and limit', () => {
    expect(
      acquireFaults({
        domain: 'a//b',
        requestId: 'mine',
        holder: 'h'.repeat(256),
        ttlMs: 2_999,
        waitMs: 86_400_001,
        metadata: { key: 'v'.repeat(4_094) },
        coolDownMs: 600_001,
        slots: 1_001,
        seenRevision: -1n,
      }),
    ).toEqual([
      'domain must be segments of [A-Za-z0-9._~:@+=-] separated by single slashes',
      'request_id must be a UUID in text form, e.g. 123e4567-e89b-42d3-a456-426614174000',
      'holder has 256 bytes; it must have 1 to 255',
      'ttl_ms is 2999; it must be from 3000 to 86400000, or 0 for 15000',
      'metadata has 4097 bytes in keys and values; at most 4096 are allowed',
      'seen_revision is -1; it must be from 0 to 2^53 - 1',
      'wait_ms is 86400001; it must be from 0 to 86400000',
      'cool_down_ms is 600001; it must be from 0 to 600000',
      'slots is 1001; it must be from 0 to 1000',
    ]);
  });

  it('take the limits themselves', () => {
    const longest = 'h'.repeat(255);
    for (const fields of [
      { ttlMs: 3_000 },
      { ttlMs: 86_400_000 },
      { holder: longest },
      { domain: longest },
      { slots: 1 },
      { slots: 1_000 },
      { slots: 2, domain: 'h'.repeat(247) },
      { slots: 1, domain: 'h'.repeat(248) },
      { waitMs: 86_400_000 },
      { coolDownMs: 600_000 },
      { metadata: { key: 'v'.repeat(4_093) } },
      { seenRevision: 2n ** 53n - 1n },
    ]) {
      expect(acquireFaults(fields)).toEqual([]);
    }
    expect(acquireFaults({ ttlMs: 86_400_001 })).toHaveLength(1);
    expect(acquireFaults({ holder: '' })).toHaveLength(1);
    expect(acquireFaults({ domain: '' })).toEqual(['domain must not be empty']);
    expect(acquireFaults({ domain: 'gpu#2' })).toHaveLength(1);
    expect(acquireFaults({ slots: 2, domain: 'h'.repeat(248) })).toEqual([
      'domain has 248 bytes; a name with slots has at most 247',
    ]);
    expect(acquireFaults({ seenRevision: 2n ** 53n })).toHaveLength(1);
    expect(acquireFaults({ holder: 'é'.repeat(128) })).toEqual(['holder has 256 bytes; it must have 1 to 255']);
  });

  it('fill in the default TTL and leave a missing id to the node', () => {
    const parsed = parseRequest(
      carried({ type: 'acquire', message: { ...ACQUIRE, requestId: '', ttlMs: 0, slots: 1 } }),
      LIMITS,
    );
    expect(parsed).toMatchObject({ ok: { ttlMs: 15_000, requestId: undefined, slots: 1 } });
    // 0 is what a client of an earlier version says.
    const unsaid = parseRequest(carried({ type: 'acquire', message: ACQUIRE }), LIMITS);
    expect(unsaid).toMatchObject({ ok: { slots: 1, waitMs: 0, coolDownMs: 0 } });
  });

  it('have one form of an id, and metadata sorted by key', () => {
    const metadata = { b: '1', a: '2', B: '3', ['__proto__']: '4' };
    const message = { ...ACQUIRE, requestId: ID.toUpperCase(), metadata };
    const expected = [
      ['B', '3'],
      ['__proto__', '4'],
      ['a', '2'],
      ['b', '1'],
    ];
    expect(parseRequest(carried({ type: 'acquire', message }), LIMITS)).toMatchObject({
      ok: { requestId: ID, metadata: expected },
    });
  });

  it('refuse text that would not stay the text it was', () => {
    expect(acquireFaults({ holder: 'a\ufffd' })).toEqual(['holder is not well-formed UTF-8, or holds U+FFFD']);
    expect(acquireFaults({ metadata: { '\ufffd': '' } })).toHaveLength(1);
    expect(acquireFaults({ metadata: { key: '\ufffd' } })).toHaveLength(1);
    // The byte 0xff is no UTF-8, and ED A0 80 is a lone surrogate: field 3 is the holder.
    for (const bytes of [[0xff], [0xed, 0xa0, 0x80]]) {
      const good = encodeRequest('acquire', { ...ACQUIRE, holder: '' });
      const request = METHOD_OF.acquire.requestDeserialize(
        Buffer.concat([good, Buffer.from([0x1a, bytes.length, ...bytes])]),
      );
      expect(parseRequest(request, LIMITS)).toEqual({ faults: ['holder is not well-formed UTF-8, or holds U+FFFD'] });
    }
  });

  it('name each bad lease of a renewal and bound their number', () => {
    const good = { domain: 'a', token: 1n };
    const renew = (leases: readonly { domain: string; token: bigint }[]): readonly string[] =>
      faults({ type: 'renew', message: { leases } });
    expect(renew([good, { domain: '', token: 1n }, good, { domain: 'b', token: 0n }])).toEqual([
      'leases[1].domain must not be empty',
      'leases[3].token is 0; it must be from 1 to 2^53 - 1',
    ]);
    expect(renew([{ domain: 'a', token: 2n ** 53n }])).toHaveLength(1);
    expect(renew([])).toEqual(['leases has 0 elements; it must have 1 to 1000']);
    expect(renew(Array.from({ length: 1_000 }, () => good))).toEqual([]);
    expect(renew(Array.from({ length: 1_001 }, () => good))).toEqual([
      'leases has 1001 elements; it must have 1 to 1000',
    ]);
    const many = renew(Array.from({ length: 30 }, () => ({ domain: 'a', token: -1n })));
    expect(many).toHaveLength(21);
    expect(many.at(-1)).toBe('leases: 10 more faults');
  });

  it('refuse what is missing or unknown in the others', () => {
    expect(faults({ type: 'release', message: { lease: null } })).toEqual(['lease is missing']);
    expect(faults({ type: 'withdraw', message: { domain: 'a', requestId: '' } })).toHaveLength(1);
    expect(faults({ type: 'verify', message: { lease: { domain: '#', token: 0n }, freshness: 0 } })).toHaveLength(2);
    expect(faults({ type: 'get', message: { domain: 'a', freshness: 7 } })).toEqual([
      'freshness 7 is not known to this version; use LINEARIZABLE or LOCAL',
    ]);
    expect(faults({ type: 'forceRelease', message: { domain: 'a', token: 1n, note: '' } })).toEqual([
      'note has 0 bytes; it must have 1 to 500',
    ]);
    expect(faults({ type: 'forceRelease', message: { domain: 'a', token: 1n, note: 'n'.repeat(501) } })).toHaveLength(
      1,
    );
    // A change of limits names each that is out of its range, and must name one.
    const none = { prefixQuotas: null };
    expect(faults({ type: 'changeLimits', message: { ...none, queueLimit: 0 } })).toEqual([]);
    expect(faults({ type: 'changeLimits', message: { prefixQuotas: { quotas: [] } } })).toEqual([]);
    expect(faults({ type: 'changeLimits', message: none })).toEqual([
      'no limit is given: set at least one of queue_limit, leases_per_principal, waiters_per_principal, prefix_quotas',
    ]);
    const quotas = [
      { prefix: '/a', leases: 1_000_000_001, waiters: 4_294_967_295 },
      { prefix: 'b', leases: 0, waiters: 1_000_000_000 },
      { prefix: 'b', leases: 1, waiters: 1 },
    ];
    const numbers = { queueLimit: 1_000_000_001, leasesPerPrincipal: 0, waitersPerPrincipal: 4_294_967_295 };
    expect(faults({ type: 'changeLimits', message: { ...numbers, prefixQuotas: { quotas } } })).toEqual([
      'queue_limit is 1000000001; it must be from 0 to 1000000000',
      'leases_per_principal is 0; it must be from 1 to 1000000000',
      'waiters_per_principal is 4294967295; it must be from 0 to 1000000000',
      expect.stringMatching(/^prefix_quotas\.quotas\[0\]\.prefix must be the beginning of a domain.*, not "\/a"$/),
      'prefix_quotas.quotas[0].leases is 1000000001; it must be from 0 to 1000000000',
      'prefix_quotas.quotas[0].waiters is 4294967295; it must be from 0 to 1000000000',
      'prefix_quotas.quotas names b twice',
    ]);
    const many = (count: number) => Array.from({ length: count }, () => ({ prefix: '#', leases: 0, waiters: 0 }));
    expect(faults({ type: 'changeLimits', message: { prefixQuotas: { quotas: many(100) } } })).toHaveLength(21);
    expect(faults({ type: 'changeLimits', message: { prefixQuotas: { quotas: many(101) } } })).toEqual([
      'prefix_quotas.quotas must have at most 100 prefixes: every lease is held against each, not 101',
    ]);
    // A slot is leased, asked for and ended by its own name; its number has one form.
    for (const name of ['gpu#0', 'gpu#999']) {
      expect(faults({ type: 'release', message: { lease: { domain: name, token: 1n } } })).toEqual([]);
      expect(faults({ type: 'get', message: { domain: name, freshness: 0 } })).toEqual([]);
      expect(faults({ type: 'forceRelease', message: { domain: name, token: 1n, note: 'n' } })).toEqual([]);
      // Acquires and withdrawals are of the name.
      expect(faults({ type: 'withdraw', message: { domain: name, requestId: ID } })).toHaveLength(1);
    }
    for (const name of ['gpu#', 'gpu#01', 'gpu#1000', 'gpu#-1', '#1', 'gpu#1#1', `${'h'.repeat(248)}#1`]) {
      expect(faults({ type: 'get', message: { domain: name, freshness: 0 } })).toHaveLength(1);
    }
    const list = { prefix: '', pageSize: 0, pageToken: '', freshness: 0 };
    expect(faults({ type: 'list', message: list })).toEqual([]);
    expect(faults({ type: 'list', message: { ...list, pageSize: 1_000, pageToken: 'gpu#3' } })).toEqual([]);
    expect(
      faults({ type: 'list', message: { prefix: '\ufffd', pageSize: 1_001, pageToken: '#', freshness: 9 } }),
    ).toEqual([
      'prefix is not well-formed UTF-8, or holds U+FFFD',
      'page_size is 1001; it must be from 0 to 1000',
      'page_token is none that this cluster gave: take next_page_token of the page before',
      'freshness 9 is not known to this version; use LINEARIZABLE or LOCAL',
    ]);
    expect(faults({ type: 'transferLeadership', message: { toNodeId: 'no/such' } })).toHaveLength(1);
  });

  it('read an unspecified freshness as linearizable', () => {
    const message = { domain: 'a', freshness: 'FRESHNESS_UNSPECIFIED' };
    expect(parseRequest(carried({ type: 'get', message }), LIMITS)).toMatchObject({
      ok: { freshness: 'linearizable' },
    });
  });
});

describe('answers', () => {
  it('come back as they were given', () => {
    fc.assert(
      fc.property(answer, header, (given, around) => {
        const method = METHOD_OF[given.type];
        const version = given.type === 'getStatus' ? '1.2.3' : '';
        const got = method.responseDeserialize(method.responseSerialize({ header: around, answer: given, version }));
        expect(got.answer).toEqual(given);
        expect(got.version).toBe(version);
        if (given.type === 'getStatus') {
          expect(got.header).toEqual({
            ...around,
            node: given.node,
            leader: given.leader,
            revision: given.appliedRevision,
          });
        } else if (['transferLeadership', 'forceRelease', 'changeLimits', 'getStateHash'].includes(given.type)) {
          expect(got.header).toBeUndefined();
        } else expect(got.header).toEqual(around);
      }),
    );
  });

  it('cut or damaged are an answer or UnexpectedResponse', () => {
    fc.assert(
      fc.property(answer, fc.nat(), fc.integer({ min: 0, max: 255 }), fc.nat(), (given, at, mask, length) => {
        const method = METHOD_OF[given.type];
        const bytes = Buffer.from(method.responseSerialize({ header: undefined, answer: given, version: '' }));
        if (bytes.length > 0) bytes[at % bytes.length] = (bytes[at % bytes.length] ?? 0) ^ mask;
        try {
          expect(method.responseDeserialize(bytes.subarray(0, length % (bytes.length + 1))).answer.type).toBe(
            given.type,
          );
        } catch (error) {
          expect(error).toBeInstanceOf(UnexpectedResponse);
        }
      }),
      { numRuns: 500 },
    );
  });

  const wireHeader: WireHeader = { cluster: 'c', incarnation: '', revision: 7n, nodeId: 'n1', leaderId: '' };
  const acquired = (more: object): unknown =>
    LEASE_SERVICE.Acquire.responseDeserialize(encodeResponse('acquire', { header: wireHeader, requestId: ID, ...more }))
      .answer;

  it('of a newer server count as not granted', () => {
    const held = {
      type: 'acquire',
      requestId: ID,
      outcome: { type: 'notGranted', reason: 'held', current: undefined, queueLength: 0, coolDownLeftMs: 0 },
    };
    expect(acquired({})).toEqual(held);
    const unknown = { reason: 99, current: null, queueLength: 0, coolDownLeftMs: 0 };
    expect(acquired({ notGranted: unknown })).toEqual(held);
  });

  it('of a newer server count as not live', () => {
    const over = {
      type: 'ended',
      ended: { lease: undefined, reason: 'unspecified', by: '', note: '', currentToken: 0 },
    };
    const renewed = LEASE_SERVICE.Renew.responseDeserialize(encodeResponse('renew', { header: null, results: [{}] }));
    expect(renewed.answer).toEqual({ type: 'renew', results: [over] });
    const verified = LEASE_SERVICE.Verify.responseDeserialize(encodeResponse('verify', { header: null }));
    expect(verified.answer).toEqual({ type: 'verify', outcome: over });
    const ended = { lease: null, reason: 99, by: '', note: '', currentToken: 0n };
    expect(acquired({ ended })).toMatchObject({ outcome: { type: 'ended', ended: { reason: 'unspecified' } } });
  });

  it('above 2^53 are refused', () => {
    const lease = { domain: 'a', token: 2n ** 53n, holder: 'h', metadata: {}, ttlMs: 1, grantedAtUnixMs: 1n };
    expect(() => acquired({ granted: lease })).toThrow(UnexpectedResponse);
    expect(() => acquired({ granted: { ...lease, token: 0n } })).toThrow(UnexpectedResponse);
    expect(acquired({ granted: { ...lease, token: 2n ** 53n - 1n } })).toMatchObject({
      outcome: { lease: { token: Number.MAX_SAFE_INTEGER } },
    });
  });
});

describe('methods', () => {
  it('have the paths of the files and are exactly those of this version', () => {
    const paths = [...Object.values(LEASE_SERVICE), ...Object.values(CLUSTER_SERVICE)].map(({ path }) => path);
    expect(paths).toEqual([
      '/fencepost.v1.LeaseService/Acquire',
      '/fencepost.v1.LeaseService/Renew',
      '/fencepost.v1.LeaseService/Release',
      '/fencepost.v1.LeaseService/Withdraw',
      '/fencepost.v1.LeaseService/Verify',
      '/fencepost.v1.LeaseService/Get',
      '/fencepost.v1.LeaseService/List',
      '/fencepost.v1.LeaseService/Watch',
      '/fencepost.v1.ClusterService/GetStatus',
      '/fencepost.v1.ClusterService/TransferLeadership',
      '/fencepost.v1.ClusterService/ForceRelease',
      '/fencepost.v1.ClusterService/ChangeLimits',
      '/fencepost.v1.ClusterService/GetStateHash',
    ]);
    expect([...Object.values(METHOD_OF), LEASE_SERVICE.Watch].map(({ path }) => path).sort()).toEqual(paths.sort());
  });

  it('write what any other implementation reads', () => {
    const bytes = encodeCall({ type: 'get', domain: 'a' as Domain, freshness: 'local' });
    expect([...bytes]).toEqual([0x0a, 1, 0x61, 0x10, 2]);
    expect(decodeRequest('get', bytes)).toEqual({ domain: 'a', freshness: 'FRESHNESS_LOCAL' });
    expect([...encodeCall({ type: 'transferLeadership', to: 'n' as NodeId })]).toEqual([0x0a, 1, 0x6e]);
  });
});
