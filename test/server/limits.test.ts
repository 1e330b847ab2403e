/** What is refused at the door: by a stock client's bytes, with everything that is wrong. */
import { connect } from 'node:http2';
import { afterEach, describe, expect, it } from 'vitest';
import type { ServiceError } from '@grpc/grpc-js';
import { encodeRequest, pathOf } from '../../src/wire/public-messages.js';
import type { CallType, RequestMessages } from '../../src/wire/public-types.js';
import { ANSWERING, atEnd, CALLS, clientOf, DOMAIN, endAll, sendBytes, sendCall, serve, takenPort } from './kit.js';
import type { Served } from './kit.js';

afterEach(endAll);

/** Bytes that a header block may have with the strictest of the usual clients (8 KiB). */
const HEADER_BYTES = 8_192;

/** An Acquire of nothing but a domain and a holder. */
const MINIMAL = {
  domain: DOMAIN as string,
  requestId: '',
  holder: 'h',
  ttlMs: 0,
  waitMs: 0,
  metadata: {},
  coolDownMs: 0,
  slots: 0,
  seenRevision: 0n,
};

async function refused<T extends CallType>(type: T, message: RequestMessages[T]): Promise<ServiceError> {
  const served = await serve(ANSWERING);
  const ended = await sendBytes(clientOf(served.address), pathOf(type), encodeRequest(type, message));
  return faultOf(served, ended);
}

function faultOf(served: Served, ended: Awaited<ReturnType<typeof sendBytes>>): ServiceError {
  if (!('error' in ended)) throw new Error('an error was expected');
  expect(served.events).toEqual([]);
  expect(ended.error.code).toBe(3);
  expect(ended.error.metadata.get('fencepost-reason')).toEqual(['INVALID_REQUEST']);
  expect(ended.error.metadata.get('fencepost-outcome')).toEqual(['not-done']);
  expect(ended.error.metadata.get('retry-delay-ms')).toEqual([]);
  return ended.error;
}

describe('a request outside the limits', () => {
  it('of Acquire is told every fault at once, by field and limit', async () => {
    const { details } = await refused('acquire', {
      domain: 'a//b',
      requestId: 'mine',
      holder: 'h'.repeat(256),
      ttlMs: 10,
      waitMs: 86_400_001,
      metadata: { k: 'v'.repeat(4_096) },
      coolDownMs: 600_001,
      slots: 1_001,
      seenRevision: -1n,
    });
    expect(details.split('; ')).toEqual([
      'domain must be segments of [A-Za-z0-9._~:@+=-] separated by single slashes',
      'request_id must be a UUID in text form, e.g. 123e4567-e89b-42d3-a456-426614174000',
      'holder has 256 bytes',
      'it must have 1 to 255',
      'ttl_ms is 10',
      'it must be from 3000 to 86400000, or 0 for 15000',
      'metadata has 4097 bytes in keys and values',
      'at most 4096 are allowed',
      'seen_revision is -1',
      'it must be from 0 to 2^53 - 1',
      'wait_ms is 86400001',
      'it must be from 0 to 86400000',
      'cool_down_ms is 600001',
      'it must be from 0 to 600000',
      'slots is 1001',
      'it must be from 0 to 1000',
    ]);
  });

  it.each<[string, () => Promise<ServiceError>, readonly string[]]>([
    ['Renew of none', () => refused('renew', { leases: [] }), ['leases has 0 elements; it must have 1 to 1000']],
    [
      'Renew of 1 001',
      () => refused('renew', { leases: Array.from({ length: 1_001 }, () => ({ domain: 'd', token: 1n })) }),
      ['leases has 1001 elements; it must have 1 to 1000'],
    ],
    [
      'Renew with two bad leases',
      () =>
        refused('renew', {
          leases: [
            { domain: 'd', token: 0n },
            { domain: 'd', token: 1n },
            { domain: '', token: 1n },
          ],
        }),
      ['leases[0].token is 0; it must be from 1 to 2^53 - 1', 'leases[2].domain must not be empty'],
    ],
    ['Release of nothing', () => refused('release', { lease: null }), ['lease is missing']],
    [
      'Verify of nothing',
      () => refused('verify', { lease: null, freshness: 9 }),
      ['lease is missing', 'freshness 9 is not known'],
    ],
    [
      'Withdraw',
      () => refused('withdraw', { domain: '', requestId: '' }),
      ['domain must not be empty', 'request_id must be a UUID'],
    ],
    [
      'List',
      () => refused('list', { prefix: '\u{fffd}', pageSize: 1_001, pageToken: 'x y', freshness: 9 }),
      ['prefix is not', 'page_size is 1001', 'page_token is none that', 'freshness 9 is not known'],
    ],
    [
      'Acquire of slots of a long name',
      () => refused('acquire', { ...MINIMAL, domain: 'd'.repeat(248), slots: 2 }),
      ['domain has 248 bytes; a name with slots has at most 247'],
    ],
    [
      'Get',
      () => refused('get', { domain: 'd'.repeat(256), freshness: 0 }),
      ['domain has 256 bytes; at most 255 are allowed'],
    ],
    [
      'ForceRelease',
      () => refused('forceRelease', { domain: '/', token: 2n ** 53n, note: '' }),
      [
        'domain must be segments',
        'token is 9007199254740992; it must be from 1 to 2^53 - 1',
        'note has 0 bytes; it must have 1 to 500',
      ],
    ],
    [
      'ChangeLimits',
      () => refused('changeLimits', { queueLimit: 1_000_000_001, leasesPerPrincipal: 0, prefixQuotas: null }),
      ['queue_limit is 1000000001; it must be from 0', 'leases_per_principal is 0; it must be from 1'],
    ],
    [
      'TransferLeadership',
      () => refused('transferLeadership', { toNodeId: 'a b' }),
      ['to_node_id must be 1 to 63 characters'],
    ],
  ])('%s', async (_, send, faults) => {
    const { details } = await send();
    for (const fault of faults) expect(details).toContain(fault);
  });

  it('with a thousand faults is answered in fewer bytes than any client takes', async () => {
    const leases = Array.from({ length: 1_000 }, () => ({ domain: '#', token: -(2n ** 63n) }));
    const { details, metadata } = await refused('renew', { leases });
    expect(details).toContain('1980 more faults');
    let bytes = encodeURI(details).length;
    for (const [name, values] of Object.entries(metadata.toHttp2Headers()))
      bytes += name.length + String(values).length + 64;
    expect(bytes).toBeLessThan(HEADER_BYTES);
  });

  it.each<[string, Uint8Array]>([
    ['that are no message', Uint8Array.of(0xff, 0xff, 0xff)],
    ['that end too early', Uint8Array.of(0x0a, 50, 0x64)],
    ['of which the text is no UTF-8', Uint8Array.of(0x0a, 1, 0xff)],
  ])('has bytes %s', async (_, bytes) => {
    const served = await serve(ANSWERING);
    const client = clientOf(served.address);
    for (const type of ['acquire', 'release', 'get'] as const)
      faultOf(served, await sendBytes(client, pathOf(type), bytes));
    // The connection and the server live on.
    expect(await sendCall(client, CALLS.get)).toHaveProperty('response');
  });

  it('has more than a megabyte', async () => {
    const served = await serve(ANSWERING);
    const client = clientOf(served.address);
    const ended = await sendBytes(client, pathOf('get'), new Uint8Array(1024 * 1024 + 1));
    expect(ended).toMatchObject({ error: { code: 8 } });
    expect(served.events).toEqual([]);
    expect(await sendCall(client, CALLS.get)).toHaveProperty('response');
  });
});

describe('a request at the limits', () => {
  it('of Renew with a thousand of the longest names is taken', async () => {
    const { address, events } = await serve(({ id, call }, calls) => {
      const results = call.type === 'renew' ? call.leases.map(() => ({ type: 'live', ttlMs: 1 }) as const) : [];
      const header = { cluster: 'c', incarnation: '', revision: 1, node: 'n1', leader: undefined } as never;
      calls.answer(id, header, { type: 'answer', answer: { type: 'renew', results }, revision: 1 as never });
    });
    const leases = Array.from({ length: 1_000 }, () => ({
      domain: 'd'.repeat(255),
      token: BigInt(Number.MAX_SAFE_INTEGER),
    }));
    const ended = await sendBytes(clientOf(address), pathOf('renew'), encodeRequest('renew', { leases }));
    expect(ended).toHaveProperty('response');
    const [event] = events;
    expect(event?.type === 'call' && event.call.type === 'renew' && event.call.leases.length).toBe(1_000);
  });

  it('of Acquire without TTL and slots gets the defaults', async () => {
    const { address, events } = await serve(ANSWERING);
    await sendBytes(clientOf(address), pathOf('acquire'), encodeRequest('acquire', MINIMAL));
    expect(events[0]).toMatchObject({ call: { ttlMs: 15_000, waitMs: 0, coolDownMs: 0, slots: 1 } });
  });
});

describe('a method that is not there', () => {
  it.each(['LeaseService/Nothing', 'ClusterService/AddMember', 'Other/Get'])(
    '%s answers UNIMPLEMENTED',
    async (method) => {
      const { address } = await serve(ANSWERING);
      expect(await sendBytes(clientOf(address), `/fencepost.v1.${method}`, new Uint8Array())).toMatchObject({
        error: { code: 12 },
      });
    },
  );
});

describe('what is no gRPC', () => {
  it('is refused by its content type, and the server lives on', async () => {
    const { address } = await serve(ANSWERING);
    const session = connect(`http://${address}`);
    atEnd(() => {
      session.destroy();
    });
    const status = await new Promise((resolve, reject) => {
      const stream = session.request({ ':method': 'POST', ':path': pathOf('get'), 'content-type': 'application/json' });
      stream.on('error', reject);
      stream.on('response', (headers) => {
        resolve(headers[':status']);
      });
      stream.end('{}');
    });
    expect(status).toBe(415);
    expect(await sendCall(clientOf(address), CALLS.get)).toHaveProperty('response');
  });
});

describe('listening', () => {
  it('says which address cannot be had', async () => {
    const port = await takenPort();
    await expect(serve(ANSWERING, `127.0.0.1:${port}`)).rejects.toThrow(`client listener: 127.0.0.1:${port} is in use`);
  });
});
