/** What clients and services see of each other, over each framework; that stale writes are refused shows the kit. */
import { createServer } from 'node:http';
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { expressFencing, fencedFetch, FencedRequestError, fencingHeaders, nodeFencing } from '../../src/guard/http.js';
import type { FencedLease, Outcome } from '../../src/guard/http.js';
import { memoryFence } from '../../src/guard/memory.js';
import { HTTP } from '../servers/http.js';
import type { Listening } from '../servers/http.js';

const LEASE: FencedLease = { domain: 'a', token: 5n, cluster: 'prod', incarnation: 'one' };
const POST = { method: 'POST' };

describe.each(HTTP)('a service of $name', ({ start }) => {
  describe.skipIf(start === undefined)('answers', () => {
    const guard = memoryFence({});
    let service: Listening;
    let handled: readonly FencedLease[][];
    let outcome: Outcome<unknown>;
    let early: boolean;

    beforeEach(async () => {
      handled = [];
      early = false;
      outcome = { status: 'applied', value: undefined, earlierIncarnation: undefined };
      guard.reset(LEASE);
      if (start === undefined) return;
      service = await start({
        domains: ({ searchParams }) => searchParams.getAll('domain'),
        handle: (_, leases) => {
          handled = [...handled, [...leases]];
          return Promise.resolve(outcome);
        },
        guard: { fence: (domain) => (early ? guard.fence(domain) : undefined) },
      });
    });
    afterEach(() => service[Symbol.asyncDispose]());

    const ask = async (path: string, headers: Readonly<Record<string, string>>) => {
      const response = await fetch(service.url + path, { ...POST, headers });
      const type = response.headers.get('content-type');
      const text = await response.text();
      const body = type?.startsWith('application/problem+json') === true ? (JSON.parse(text) as unknown) : text;
      return { status: response.status, body, cache: response.headers.get('cache-control'), headers: response.headers };
    };
    const presented = [{ domain: 'a', token: '5', cluster: 'prod', incarnation: 'one' }];

    it('428 to a request without a lease that needs one', async () => {
      expect(await ask('/?domain=a', {})).toMatchObject({
        status: 428,
        cache: 'no-store',
        body: {
          type: 'urn:fencepost:problem:required',
          title: 'The request needs a lease',
          status: 428,
          detail: 'send a lease of a in Fencing-Domain, Fencing-Token, Fencing-Cluster and Fencing-Incarnation',
          required: ['a'],
          presented: [],
        },
      });
      expect(handled).toEqual([]);
    });

    it('428 to a request with a lease of another domain', async () => {
      expect(await ask('/?domain=b&domain=c', fencingHeaders(LEASE))).toMatchObject({
        status: 428,
        body: { type: 'urn:fencepost:problem:required', required: ['b', 'c'], presented },
      });
      expect(handled).toEqual([]);
    });

    it('400 to fields that cannot be read, with every fault', async () => {
      const answer = await ask('/?domain=a', {
        'Fencing-Domain': '"a", "a b", "a"',
        'Fencing-Token': '"05", "9223372036854775808"',
        'Fencing-Cluster': 'prod',
      });
      expect(answer).toMatchObject({
        status: 400,
        body: {
          type: 'urn:fencepost:problem:malformed',
          faults: [
            'Fencing-Domain "a b" must be segments of [A-Za-z0-9._~:@+=-] separated by single slashes',
            'Fencing-Token "05" must be a decimal from 1 to 2^63 - 1, without leading zeros',
            'Fencing-Token "9223372036854775808" must be a decimal from 1 to 2^63 - 1, without leading zeros',
            'Fencing-Cluster must be strings in double quotes, separated by commas, without parameters (RFC 9651)',
            'Fencing-Incarnation is missing',
            'each lease has one value in each field, and these differ in number: Fencing-Domain 3, Fencing-Token 2',
            'Fencing-Domain names a more than once',
          ],
        },
      });
      expect(handled).toEqual([]);
    });

    it('400 to a lease that the request does not take', async () => {
      const both = fencingHeaders([LEASE, { ...LEASE, domain: 'b' }]);
      expect(await ask('/?domain=a', both)).toMatchObject({
        status: 400,
        body: { faults: ['Fencing-Domain names b: this request takes a and no other'] },
      });
      expect(handled).toEqual([]);
    });

    it.each<[string, Outcome<unknown>, number, object]>([
      ['stale', { status: 'stale', fence: 2n ** 53n + 1n }, 412, { fence: '9007199254740993' }],
      ['issuer', { status: 'rejected', reason: 'issuer', message: 'moved' }, 412, { detail: 'moved' }],
      ['incarnation', { status: 'rejected', reason: 'incarnation', message: 'two' }, 412, { detail: 'two' }],
      ['jump', { status: 'rejected', reason: 'jump', message: 'far' }, 412, { detail: 'far' }],
      ['missing', { status: 'missing' }, 404, {}],
      ['retry', { status: 'retry', attempts: 5, cause: new Error('secret') }, 409, { attempts: 5 }],
    ])('%s as the guard said it, and the client reads it', async (name, said, status, members) => {
      outcome = said;
      const answer = await ask('/?domain=a', fencingHeaders(LEASE));
      expect(answer).toMatchObject({
        status,
        cache: 'no-store',
        body: { type: `urn:fencepost:problem:${name}`, status, presented, ...members },
      });
      expect(JSON.stringify(answer.body)).not.toContain('secret');
      expect(await fencedFetch(LEASE)(`${service.url}/?domain=a`, POST)).toEqual(
        said.status === 'retry' ? { ...said, cause: expect.stringContaining('try again') as string } : said,
      );
      expect(handled).toEqual([[LEASE], [LEASE]]);
    });

    it('what was applied, marked so, with the incarnation before', async () => {
      outcome = { status: 'applied', value: undefined, earlierIncarnation: 'ze"ro' };
      const done = await fencedFetch(LEASE)(`${service.url}/?domain=a`, POST);
      expect(done).toMatchObject({ status: 'applied', earlierIncarnation: 'ze"ro' });
      outcome = { status: 'applied', value: undefined, earlierIncarnation: undefined };
      const { headers, status, body, cache } = await ask('/?domain=a', fencingHeaders(LEASE));
      expect([status, body, headers.get('fencing-outcome'), cache]).toEqual([200, 'done', 'applied', 'no-store']);
      expect(headers.has('fencing-earlier-incarnation')).toBe(false);
    });

    it('what was applied, also over a fence whose incarnation no field can hold', async () => {
      outcome = { status: 'applied', value: undefined, earlierIncarnation: 'Łódź' };
      const done = await fencedFetch(LEASE)(`${service.url}/?domain=a`, POST);
      expect(done).toMatchObject({ status: 'applied', earlierIncarnation: '??d?' });
    });

    it('several leases, in the order of their domains', async () => {
      const other = { ...LEASE, domain: 'b', token: 2n ** 53n + 1n, cluster: 'a, "b"' };
      const done = await fencedFetch([other, LEASE])(`${service.url}/?domain=b&domain=a`, POST);
      expect(done.status).toBe('applied');
      expect(handled).toEqual([[LEASE, other]]);
    });

    it('a request that needs no lease, whatever its fields say', async () => {
      expect(await ask('/', { 'Fencing-Token': 'nonsense' })).toMatchObject({ status: 200, body: 'done' });
      expect(handled).toEqual([[]]);
    });

    it('early when it is given the fence, and leaves to the guard what that does not refuse', async () => {
      early = true;
      const old = { ...LEASE, token: 4n };
      expect(await fencedFetch(old)(`${service.url}/?domain=a`, POST)).toEqual({ status: 'stale', fence: 5n });
      const foreign = { ...LEASE, cluster: 'elsewhere' };
      expect(await fencedFetch(foreign)(`${service.url}/?domain=a`, POST)).toMatchObject({ reason: 'issuer' });
      expect(handled).toEqual([]);
      outcome = { status: 'stale', fence: 6n };
      expect(await fencedFetch(LEASE)(`${service.url}/?domain=a`, POST)).toEqual(outcome);
      expect(handled).toEqual([[LEASE]]);
    });

    it('500 when the fence cannot be read', async () => {
      guard.fence = () => {
        throw new Error('no fences today');
      };
      early = true;
      const failed = fencedFetch(LEASE)(`${service.url}/?domain=a`, POST);
      await expect(failed).rejects.toMatchObject({ response: { status: 500 } });
      expect(handled).toEqual([]);
    });
  });

  it.skipIf(start === undefined)(
    'answers a repetition before the fence is looked at, and a new key after it',
    async () => {
      const counter = { value: 0 };
      const guard = memoryFence(counter);
      const answers = new Map<unknown, string>();
      if (start === undefined) throw new Error('skipped');
      await using service = await start({
        domains: () => ['a'],
        guard,
        handle: async (url, leases) => {
          const key = url.searchParams.get('key');
          return guard.run(leases, (act) =>
            act((owned) => {
              owned.value++;
              answers.set(key, `stored ${owned.value}`);
            }),
          );
        },
        replay: (headers) => answers.get(headers['idempotency-key']),
      });
      const send = async (lease: FencedLease, key: string) => {
        const headers = { ...fencingHeaders(lease), 'Idempotency-Key': key };
        const response = await fetch(`${service.url}/?key=${key}`, { ...POST, headers });
        return [response.status, (await response.text()).slice(0, 8)];
      };
      expect(await send(LEASE, 'first')).toEqual([200, 'done']);
      expect(await send({ ...LEASE, token: 6n }, 'second')).toEqual([200, 'done']);
      expect(await send(LEASE, 'first')).toEqual([200, 'stored 1']);
      expect(await send(LEASE, 'third')).toEqual([412, '{"type":']);
      expect(counter.value).toBe(2);
    },
  );
});

describe('the client', () => {
  let answer: (request: IncomingMessage, response: ServerResponse) => void;
  let requests: string[];
  let url: string;
  const server = createServer((request, response) => {
    requests.push(`${request.method ?? ''} ${request.url ?? ''}`);
    answer(request, response);
  });
  beforeEach(async () => {
    requests = [];
    await new Promise<void>((done) => server.listen(0, '127.0.0.1', done));
    url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/`;
  });
  afterEach(async () => {
    server.closeAllConnections();
    await new Promise((done) => server.close(done));
  });

  it('sends each request once, whatever the answer: stale, retry, none', async () => {
    const send = fencedFetch(LEASE);
    const problem = (status: number, type: string, more: object): void => {
      answer = (_, response) => {
        response.writeHead(status, { 'Content-Type': 'application/problem+json; charset=utf-8' });
        response.end(JSON.stringify({ type: `urn:fencepost:problem:${type}`, ...more }));
      };
    };
    problem(412, 'stale', { fence: '6' });
    expect(await send(url, POST)).toEqual({ status: 'stale', fence: 6n });
    problem(409, 'retry', { attempts: 5 });
    expect(await send(url, POST)).toMatchObject({ status: 'retry', attempts: 5 });
    answer = ({ socket }) => {
      socket.destroy();
    };
    await expect(send(url, POST)).rejects.toThrow('fetch failed');
    expect(requests).toEqual(['POST /', 'POST /', 'POST /']);
  });

  it('keeps what the request has, and sets the fields', async () => {
    let seen: IncomingMessage['headers'] = {};
    answer = ({ headers }, response) => {
      seen = headers;
      response.writeHead(204, { 'Fencing-Outcome': 'applied' }).end();
    };
    const headers = { 'X-Mine': 'yes', 'fencing-token': '"1"' };
    expect(await fencedFetch(LEASE)(new URL(url), { ...POST, headers })).toMatchObject({ status: 'applied' });
    expect(seen).toMatchObject({ 'x-mine': 'yes', 'fencing-token': '"5"', 'fencing-domain': '"a"' });
    expect(await fencedFetch(LEASE)(new Request(url, { ...POST, headers }))).toMatchObject({ status: 'applied' });
    expect(seen).toMatchObject({ 'x-mine': 'yes', 'fencing-token': '"5"' });
  });

  it.each<[string, number, Record<string, string>, string, RegExp]>([
    ['a success that no guard is behind', 200, {}, 'done', /answered 200 without Fencing-Outcome/],
    ['a failure', 500, {}, 'broken', /answered 500, which is no outcome of a guard/],
    ['a 412 that is not about the fence', 412, {}, 'etag', /answered 412, which/],
    ['a redirect', 303, { Location: '/elsewhere', 'Fencing-Outcome': 'applied' }, '', /answered 303, which/],
    ['another problem', 412, problemType(), '{"type":"about:blank"}', /answered 412, which/],
    ['a name that it does not know', 412, problemType(), '{"type":"urn:fencepost:problem:new"}', /answered 412, which/],
    ['a stale without its fence', 412, problemType(), '{"type":"urn:fencepost:problem:stale"}', /answered 412, which/],
    ['half a problem', 412, problemType(), '{"type":"urn:fen', /answered 412, which/],
    ['an empty problem', 412, problemType(), 'null', /answered 412, which/],
    [
      'a missing lease',
      428,
      problemType(),
      '{"type":"urn:fencepost:problem:required","detail":"say a"}',
      /428: say a$/,
    ],
    ['bad fields', 400, problemType(), '{"type":"urn:fencepost:problem:malformed","detail":"b"}', /answered 400: b$/],
  ])('throws for %s, with the answer', async (_, status, headers, body, message) => {
    answer = (_request, response) => {
      response.writeHead(status, headers).end(body);
    };
    const error: unknown = await fencedFetch(LEASE)(url, POST).catch((thrown: unknown) => thrown);
    if (!(error instanceof FencedRequestError)) throw error;
    expect(error.message).toMatch(message);
    expect([error.name, error.response.status, await error.response.text()]).toEqual([
      'FencedRequestError',
      status,
      body,
    ]);
    expect(requests).toEqual(['POST /']);
  });
});

function problemType(): Record<string, string> {
  return { 'Content-Type': 'application/problem+json' };
}

describe('a handler that forgot to have its request admitted', () => {
  const request = { headers: fencingHeaders(LEASE) };
  const response = { statusCode: 0, setHeader: () => undefined, end: () => undefined };

  it('gets no leases, and cannot answer', async () => {
    const fencing = nodeFencing({ domains: () => 'a' });
    expect(() => fencing.leases(request)).toThrow('has not passed `admit`');
    const outcome = { status: 'applied', value: 1, earlierIncarnation: undefined } as const;
    expect(() => fencing.applied(response, outcome)).toThrow('has not passed `admit`');
    const lowered = Object.fromEntries(
      Object.entries(request.headers).map(([name, value]) => [name.toLowerCase(), value]),
    );
    const admitted = { headers: lowered };
    await fencing.admit(admitted, response);
    expect(fencing.leases(admitted)).toEqual([LEASE]);
    // Of other fences, about another domain.
    expect(() => nodeFencing({ domains: () => 'b' }).leases(admitted)).toThrow('has not passed `admit`');
  });

  it('hands failures of `domains` to Express', async () => {
    const fencing = expressFencing({
      domains: () => {
        throw new Error('no such order');
      },
    });
    const failure = await new Promise((next) => {
      fencing.admit(request, response, next);
    });
    expect(failure).toEqual(new Error('no such order'));
  });
});
