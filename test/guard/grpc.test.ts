/** What clients and services see of each other; that stale writes are refused shows the kit. */
import { Metadata, status } from '@grpc/grpc-js';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { fencedCall, fencingMetadata, outcomeFrom } from '../../src/guard/grpc.js';
import type { FencedLease, Outcome } from '../../src/guard/grpc.js';
import { memoryFence } from '../../src/guard/memory.js';
import { GrpcCaller, startGrpc } from '../servers/grpc.js';
import type { Listening } from '../servers/http.js';

const LEASE: FencedLease = { domain: 'a', token: 5n, cluster: 'prod', incarnation: 'one' };
const DONE: Outcome<unknown> = { status: 'applied', value: undefined, earlierIncarnation: undefined };

/** What gRPC itself may do with a call that failed: as a careless configuration of a client has it. */
const REPEATS = {
  'grpc.service_config': JSON.stringify({
    loadBalancingConfig: [],
    methodConfig: [
      {
        name: [{}],
        retryPolicy: {
          maxAttempts: 3,
          initialBackoff: '0.001s',
          maxBackoff: '0.001s',
          backoffMultiplier: 1,
          retryableStatusCodes: ['UNAVAILABLE'],
        },
      },
    ],
  }),
};

let handled: readonly FencedLease[][];
let handle: () => Promise<Outcome<unknown>>;
let fences: ReturnType<typeof memoryFence>['fence'];
let service: Listening;
let caller: GrpcCaller;

beforeEach(async () => {
  handled = [];
  handle = () => Promise.resolve(DONE);
  fences = () => undefined;
  service = await startGrpc({
    domains: ({ searchParams }) => searchParams.getAll('domain'),
    handle: (_, leases) => {
      handled = [...handled, [...leases]];
      return handle();
    },
    guard: { fence: (domain) => fences(domain) },
  });
  caller = new GrpcCaller(service.url, fencedCall, REPEATS);
});
afterEach(async () => {
  caller.close();
  await service[Symbol.asyncDispose]();
});

describe('a service ends a call', () => {
  it('as INVALID_ARGUMENT without a lease that it needs', async () => {
    const { error } = await caller.ask('/?domain=a', new Metadata());
    expect(error).toMatchObject({
      code: status.INVALID_ARGUMENT,
      details:
        'send a lease of a in the metadata fencing-domain, fencing-token, fencing-cluster and fencing-incarnation',
    });
    expect(handled).toEqual([]);
  });

  it('as INVALID_ARGUMENT with a lease of another domain', async () => {
    const called = caller.call(LEASE, '/?domain=b&domain=c');
    await expect(called).rejects.toMatchObject({
      code: status.INVALID_ARGUMENT,
      details: expect.stringContaining('send a lease of b, c in') as string,
    });
    expect(handled).toEqual([]);
  });

  it('as INVALID_ARGUMENT with metadata that cannot be read, and every fault', async () => {
    const metadata = new Metadata();
    metadata.set('fencing-domain', 'a,a b');
    metadata.add('fencing-domain', 'a');
    metadata.set('fencing-token', '05,9223372036854775808,-1,1e3');
    metadata.set('fencing-cluster', '');
    const { error } = await caller.ask('/?domain=a', metadata);
    expect(error?.code).toBe(status.INVALID_ARGUMENT);
    const decimal = 'must be a decimal from 1 to 2^63 - 1, without leading zeros';
    expect(error?.details.split('; ')).toEqual([
      'fencing-domain "a b" must be segments of [A-Za-z0-9._~:@+=-] separated by single slashes',
      ...['05', '9223372036854775808', '-1', '1e3'].map((token) => `fencing-token "${token}" ${decimal}`),
      'fencing-cluster "" must be the name of the cluster',
      'fencing-incarnation is missing',
      'each lease has one value in each field, and these differ in number: fencing-domain 3, fencing-token 4, fencing-cluster 1',
      'fencing-domain names a more than once',
    ]);
    expect(handled).toEqual([]);
  });

  it('as INVALID_ARGUMENT with a lease that the call does not take', async () => {
    await expect(caller.call([LEASE, { ...LEASE, domain: 'b' }], '/?domain=a')).rejects.toMatchObject({
      code: status.INVALID_ARGUMENT,
      details: 'fencing-domain names b: this request takes a and no other',
    });
    expect(handled).toEqual([]);
  });

  it.each<[string, Outcome<unknown>, status]>([
    ['stale', { status: 'stale', fence: 2n ** 53n + 1n }, status.FAILED_PRECONDITION],
    ['issuer', { status: 'rejected', reason: 'issuer', message: 'moved: é' }, status.FAILED_PRECONDITION],
    ['incarnation', { status: 'rejected', reason: 'incarnation', message: 'two' }, status.FAILED_PRECONDITION],
    ['jump', { status: 'rejected', reason: 'jump', message: 'far' }, status.FAILED_PRECONDITION],
    ['missing', { status: 'missing' }, status.NOT_FOUND],
    ['retry', { status: 'retry', attempts: 5, cause: new Error('secret') }, status.ABORTED],
  ])('%s as its guard said it, and the client reads it', async (_, said, code) => {
    handle = () => Promise.resolve(said);
    const { error } = await caller.ask('/?domain=a', fencingMetadata(LEASE));
    expect(error?.code).toBe(code);
    expect(JSON.stringify(error)).not.toContain('secret');
    expect(await caller.call(LEASE, '/?domain=a')).toEqual(
      said.status === 'retry'
        ? { ...said, cause: expect.stringContaining('call again after a pause') as string }
        : said,
    );
    expect(handled).toEqual([[LEASE], [LEASE]]);
  });

  it('with a mark when it was applied, and with the incarnation before', async () => {
    handle = () => Promise.resolve({ ...DONE, value: 'text', earlierIncarnation: 'zé"ro, 1' });
    expect(await caller.call(LEASE, '/?domain=a')).toEqual({
      status: 'applied',
      value: { text: 'text' },
      earlierIncarnation: 'zé"ro, 1',
    });
    handle = () => Promise.resolve(DONE);
    const { value, trailers } = await caller.ask('/?domain=a', fencingMetadata(LEASE));
    expect([value, trailers.get('fencing-outcome')]).toEqual(['done', ['applied']]);
    expect(trailers.get('fencing-earlier-incarnation-bin')).toEqual([]);
  });

  it('under several leases, in the order of their domains', async () => {
    const other = { ...LEASE, domain: 'b', token: 2n ** 53n + 1n, cluster: 'a; "b"', incarnation: '' };
    expect((await caller.call([other, LEASE], '/?domain=b&domain=a')).status).toBe('applied');
    expect(handled).toEqual([[LEASE, other]]);
  });

  it('that needs no lease, whatever its metadata say', async () => {
    const metadata = new Metadata();
    metadata.set('fencing-token', 'nonsense');
    expect(await caller.ask('/', metadata)).toMatchObject({ error: null, value: 'done' });
    expect(handled).toEqual([[]]);
  });

  it('early when it is given the fence, and leaves to the guard what that does not refuse', async () => {
    fences = () => ({ token: 5n, issuer: 'fencepost:prod', incarnation: 'one' });
    expect(await caller.call({ ...LEASE, token: 4n }, '/?domain=a')).toEqual({ status: 'stale', fence: 5n });
    expect(await caller.call({ ...LEASE, cluster: 'elsewhere' }, '/?domain=a')).toMatchObject({ reason: 'issuer' });
    expect(handled).toEqual([]);
    handle = () => Promise.resolve({ status: 'stale', fence: 6n });
    expect(await caller.call(LEASE, '/?domain=a')).toEqual({ status: 'stale', fence: 6n });
    expect(handled).toEqual([[LEASE]]);
  });

  it('as it would without a guard when the fence cannot be read, or the handler fails', async () => {
    fences = () => {
      throw new Error('no fences today');
    };
    const unknown = (details: string) => ({ code: status.UNKNOWN, details });
    await expect(caller.call(LEASE, '/?domain=a')).rejects.toMatchObject(unknown('no fences today'));
    expect(handled).toEqual([]);
    fences = () => undefined;
    handle = () => Promise.reject(Object.assign(new Error('full'), { code: status.RESOURCE_EXHAUSTED }));
    await expect(caller.call(LEASE, '/?domain=a')).rejects.toMatchObject({ code: status.RESOURCE_EXHAUSTED });
    // eslint-disable-next-line @typescript-eslint/prefer-promise-reject-errors -- what JavaScript may throw
    handle = () => Promise.reject('no error');
    await expect(caller.call(LEASE, '/?domain=a')).rejects.toMatchObject(unknown('no error'));
  });
});

describe('the client', () => {
  it('sends each call once, also when gRPC repeats by itself what is unavailable', async () => {
    for (const said of [
      { status: 'stale', fence: 6n },
      { status: 'rejected', reason: 'jump', message: 'far' },
      { status: 'missing' },
      { status: 'retry', attempts: 5, cause: '' },
    ] as const) {
      handled = [];
      handle = () => Promise.resolve(said);
      expect(await caller.call(LEASE, '/?domain=a')).toMatchObject({ status: said.status });
      expect(handled).toHaveLength(1);
    }
    handled = [];
    handle = () => Promise.reject(Object.assign(new Error('down'), { code: status.UNAVAILABLE }));
    await expect(caller.call(LEASE, '/?domain=a')).rejects.toMatchObject({ code: status.UNAVAILABLE });
    expect(handled, 'or this test would see no repetition').toHaveLength(3);
  });

  it('throws when the answer was lost, and does not call again', async () => {
    caller.close();
    caller = new GrpcCaller(service.url, fencedCall);
    const error: unknown = await caller.call(LEASE, '/?domain=a&lose').catch((thrown: unknown) => thrown);
    expect(error).toMatchObject({ code: expect.any(Number) as number, details: expect.any(String) as string });
    expect(outcomeFrom(error as Parameters<typeof outcomeFrom>[0])).toBeUndefined();
    expect(handled).toEqual([[LEASE]]);
  });

  it('throws when a call succeeds that no guard is behind', async () => {
    const plainly = fencedCall<string>(LEASE, (_, callback) => {
      callback(null, 'done');
      return {
        on: (event: string, listener: (end: { code: status; details: string; metadata: Metadata }) => void) => {
          listener({ code: status.OK, details: event, metadata: new Metadata() });
        },
      };
    });
    await expect(plainly).rejects.toThrow('the call succeeded without fencing-outcome');
  });

  it('throws, before it calls, for what is no lease', () => {
    const call = () => fencedCall({ ...LEASE, token: 0n }, () => expect.unreachable());
    expect(call).toThrow('not a lease: token must be');
  });
});
