/** Streams of operations over a real connection, to a scripted replica. */
import protobuf from 'protobufjs';
import { afterEach, describe, expect, it } from 'vitest';
import type { Call } from '../../src/base/api.js';
import type { Event } from '../../src/replica/types.js';
import { MAX_STREAM_RUNNING, MAX_STREAM_WAITING } from '../../src/server/pipeline-stream.js';
import { RequestBatch } from '../../src/wire/public-pipeline.js';
import { ANSWERING, answerTo, endAll, HEADER, serve, SILENT, until } from './kit.js';
import type { CallEvent, Served } from './kit.js';
import { acquireOf, releaseOf, renewOf, StockStream, withdrawOf } from './pipeline-kit.js';

afterEach(endAll);

function callsOf({ events }: Served): readonly CallEvent[] {
  return events.filter((event): event is CallEvent => event.type === 'call');
}

function answer(served: Served, event: CallEvent | undefined): void {
  if (event === undefined) throw new Error('no such call');
  served.calls.answer(event.id, HEADER, {
    type: 'answer',
    answer: answerTo(event.call),
    revision: HEADER.revision,
  });
}

const domainOf = (call: Call): string =>
  call.type === 'acquire' || call.type === 'withdraw'
    ? call.domain
    : call.type === 'release'
      ? call.lease.domain
      : call.type === 'renew'
        ? call.leases.map(({ domain }) => domain).join()
        : '';

describe('a stream', () => {
  it('carries every kind of operation, and answers many in one message with one header', async () => {
    const served = await serve((event, calls) => {
      // As the replica does: all that came in one turn is answered in one turn.
      setImmediate(() => {
        calls.answer(event.id, HEADER, { type: 'answer', answer: answerTo(event.call), revision: HEADER.revision });
      });
    });
    const stream = new StockStream(served.address);
    stream.send([1, acquireOf('a')], [2, renewOf('b', 'c')], [3, releaseOf('d')], [4, withdrawOf('e')]);
    const results = await stream.until(4);
    expect(results.map(({ id, type }) => [id, type])).toEqual([1, 2, 3, 4].map((id) => [id, 'answer']));
    expect(results.map((result) => (result.type === 'answer' ? result.answer.type : ''))).toEqual([
      'acquire',
      'renew',
      'release',
      'withdraw',
    ]);
    for (const header of stream.headers) expect(header).toEqual(HEADER);
    stream.raw.end();
    expect((await stream.ended()).code).toBe(0);
  });

  it('answers what came in one turn with one message, under the newest header and its greatest revision', async () => {
    const served = await serve(SILENT);
    const stream = new StockStream(served.address);
    stream.send([1, acquireOf('a')], [2, acquireOf('b')], [3, acquireOf('c')]);
    await until('three calls', () => callsOf(served).length === 3);
    const [first, second, third] = callsOf(served);
    const later = { ...HEADER, revision: HEADER.revision + 9 } as typeof HEADER;
    served.calls.answer(first?.id ?? 0, HEADER, {
      type: 'answer',
      answer: answerTo(acquireOf('a')),
      revision: 1 as never,
    });
    served.calls.answer(second?.id ?? 0, later, {
      type: 'answer',
      answer: answerTo(acquireOf('a')),
      revision: 1 as never,
    });
    served.calls.answer(third?.id ?? 0, HEADER, {
      type: 'answer',
      answer: answerTo(acquireOf('a')),
      revision: 1 as never,
    });
    await stream.until(3);
    expect(stream.sizes).toEqual([3]);
    expect(stream.headers).toEqual([later]);
  });

  it('answers a fault of an operation alone, with all that is wrong, and by the table as a call', async () => {
    const served = await serve(ANSWERING);
    const stream = new StockStream(served.address);
    const acquire = acquireOf('a//b');
    stream.send(
      [1, acquire.type === 'acquire' ? { ...acquire, ttlMs: 5, holder: '' } : acquire],
      [2, releaseOf('fine')],
      [3, renewOf()],
    );
    const results = await stream.until(3);
    const byId = new Map(results.map((result) => [result.id, result]));
    expect(byId.get(2)?.type).toBe('answer');
    expect(byId.get(1)).toMatchObject({
      type: 'failure',
      failure: {
        reason: 'INVALID_REQUEST',
        outcome: 'not-done',
        message:
          'domain must be segments of [A-Za-z0-9._~:@+=-] separated by single slashes; ' +
          'holder has 0 bytes; it must have 1 to 255; ttl_ms is 5; it must be from 3000 to 86400000, or 0 for 15000',
      },
      retryDelayMs: 0,
    });
    expect(byId.get(3)).toMatchObject({ failure: { message: 'leases has 0 elements; it must have 1 to 1000' } });
    expect(callsOf(served)).toHaveLength(1);
  });

  it('tells a failure with its outcome, its delay and its revision', async () => {
    const served = await serve(SILENT);
    const stream = new StockStream(served.address);
    stream.send([1, acquireOf('a')]);
    await until('a call', () => callsOf(served).length === 1);
    const failure = { reason: 'REQUEST_TOO_OLD', message: 'old', outcome: 'not-done', revision: 77 } as const;
    served.calls.answer(callsOf(served)[0]?.id ?? 0, HEADER, { type: 'failure', failure });
    expect(await stream.until(1)).toEqual([{ id: 1, type: 'failure', failure, retryDelayMs: 0 }]);
  });

  it('makes the request id that an acquire lacks, and passes deadlines on: ten seconds when there is none', async () => {
    const served = await serve(SILENT);
    const stream = new StockStream(served.address);
    const acquire = acquireOf('a');
    stream.send([1, { ...acquire, requestId: '' } as typeof acquire, 0], [2, releaseOf('b'), 777]);
    await until('two calls', () => callsOf(served).length === 2);
    const [first, second] = callsOf(served);
    expect(first?.call).toMatchObject({ requestId: expect.stringMatching(/^[0-9a-f-]{36}$/) as string });
    expect(first?.timeoutMs).toBeGreaterThan(5_000);
    expect(first?.timeoutMs).toBeLessThanOrEqual(10_000);
    expect(second?.timeoutMs).toBeLessThanOrEqual(777);
    expect(first?.principal).toEqual({ name: 'addr:127.0.0.1', authenticated: false });
  });

  it('of a node that has not formed says what the node waits for', async () => {
    const served = await serve();
    const stream = new StockStream(served.address);
    stream.send([1, acquireOf('a')]);
    expect(await stream.until(1)).toMatchObject([
      { failure: { reason: 'NOT_FORMED', message: expect.stringContaining('waits for n2; waits for n3') as string } },
    ]);
  });
});

describe('a stream is ended by', () => {
  it.each([
    ['bytes that are no message', Buffer.from([0xff]), 'the bytes are no PipelineRequest'],
    ['a message without operations', Buffer.alloc(0), 'operations has 0 elements; it must have 1 to 1000'],
    ['a message with too many', tooMany(), 'operations has 1001 elements; it must have 1 to 1000'],
    ['an id twice in a message', twice(), 'the ids 4 belong to operations of this stream that are still open'],
  ])('%s', async (_, bytes, details) => {
    const served = await serve(SILENT);
    const stream = new StockStream(served.address);
    stream.send([1, acquireOf('a')]);
    await until('the call', () => callsOf(served).length === 1);
    stream.raw.write(bytes);
    const status = await stream.ended();
    expect([status.code, status.details]).toEqual([3, details]);
    expect(status.metadata.get('fencepost-reason')).toEqual(['INVALID_REQUEST']);
    // Its operations are gone, as calls whose client has gone.
    await until('the end of the call', () => served.calls.size === 0);
    expect(callsOf(served)).toHaveLength(1);
  });

  it('an id that is still open', async () => {
    const served = await serve(SILENT);
    const stream = new StockStream(served.address);
    stream.send([1, acquireOf('a')]);
    stream.send([1, acquireOf('b')]);
    expect((await stream.ended()).details).toBe('the ids 1 belong to operations of this stream that are still open');
  });

  it('the end of its client, and abandons what is open, under way or not', async () => {
    const served = await serve(SILENT);
    const stream = new StockStream(served.address);
    stream.send([1, acquireOf('a')], [2, releaseOf('a')], [3, acquireOf('b')]);
    await until('two calls', () => callsOf(served).length === 2);
    stream.raw.cancel();
    await until('their end', () => served.calls.size === 0);
    expect(served.events.filter(({ type }: Event) => type === 'cancel')).toHaveLength(2);
    expect(callsOf(served)).toHaveLength(2);
  });

  it('the end of its node, after its last result', async () => {
    const served = await serve(SILENT);
    const idle = new StockStream(served.address);
    const busy = new StockStream(served.address);
    idle.send([1, acquireOf('a')]);
    busy.send([1, acquireOf('b')]);
    await until('two calls', () => callsOf(served).length === 2);
    answer(served, callsOf(served)[0]);
    await idle.until(1);
    const closed = served.close(3_600_000);
    expect((await idle.ended()).code).toBe(0);
    expect(busy.status).toBeUndefined();
    answer(served, callsOf(served)[1]);
    expect((await busy.ended()).code).toBe(0);
    expect(busy.results).toHaveLength(1);
    await closed;
  });
});

describe('operations on one domain', () => {
  it('begin one after the other, those on others at once', async () => {
    const served = await serve(SILENT);
    const stream = new StockStream(served.address);
    stream.send(
      [1, releaseOf('a')],
      [2, acquireOf('a')],
      [3, renewOf('a', 'b')],
      [4, acquireOf('b')],
      [5, acquireOf('c')],
    );
    await until('two calls', () => callsOf(served).length === 2);
    expect(callsOf(served).map(({ call }) => domainOf(call))).toEqual(['a', 'c']);
    answer(served, callsOf(served)[0]);
    await until('the second', () => callsOf(served).length === 3);
    expect(callsOf(served)[2]?.call.type).toBe('acquire');
    answer(served, callsOf(served)[2]);
    await until('the renewal', () => callsOf(served).length === 4);
    expect(callsOf(served)[3]?.call.type).toBe('renew');
    answer(served, callsOf(served)[3]);
    await until('the last', () => callsOf(served).length === 5);
    expect(domainOf(callsOf(served)[4]?.call ?? renewOf())).toBe('b');
  });

  it('a slot and its counting name are one', async () => {
    const served = await serve(SILENT);
    const stream = new StockStream(served.address);
    stream.send([1, releaseOf('gpu#2')], [2, acquireOf('gpu')], [3, releaseOf('gpu#3')]);
    await until('one call', () => callsOf(served).length === 1);
    answer(served, callsOf(served)[0]);
    await until('the acquire', () => callsOf(served).length === 2);
    expect(callsOf(served)[1]?.call.type).toBe('acquire');
  });

  it('are not held back by an acquire that is known to be in its queue', async () => {
    const waiting = new Set<string>();
    const served = await serve(SILENT, '127.0.0.1:0', (request) => waiting.has(request));
    const stream = new StockStream(served.address);
    stream.send(
      [1, acquireOf('a', { waitMs: 60_000, id: 5 })],
      [2, withdrawOf('a', 5)],
      [3, acquireOf('a', { id: 6 })],
    );
    await until('the acquire', () => callsOf(served).length === 1);
    expect(callsOf(served)).toHaveLength(1);
    waiting.add('123e4567-e89b-42d3-a456-000000000005');
    await until('the withdrawal', () => callsOf(served).length === 2);
    answer(served, callsOf(served)[1]);
    await until('the next acquire', () => callsOf(served).length === 3);
    answer(served, callsOf(served)[0]);
    answer(served, callsOf(served)[2]);
    await stream.until(3);
    expect(stream.ids).toEqual([2, 1, 3]);
  });

  it('that cannot begin before their deadline are not begun, and say so', async () => {
    const served = await serve(SILENT);
    const stream = new StockStream(served.address);
    stream.send([1, releaseOf('a')], [2, acquireOf('a'), 40], [3, withdrawOf('a')]);
    const results = await stream.until(1);
    expect(results).toMatchObject([
      {
        id: 2,
        failure: {
          reason: 'TIMED_OUT',
          outcome: 'not-done',
          message: expect.stringContaining('an earlier operation of its stream on the same domain') as string,
        },
      },
    ]);
    answer(served, callsOf(served)[0]);
    await until('the withdrawal', () => callsOf(served).length === 2);
    expect(callsOf(served)[1]?.call.type).toBe('withdraw');
  });
});

describe('a stream with more than the node can do', () => {
  it('has a share under way, is not read beyond its window, and is answered in full', async () => {
    const open: CallEvent[] = [];
    const served = await serve((event) => open.push(event));
    const stream = new StockStream(served.address);
    const total = 12_000;
    for (let id = 0; id < total; id += 100) {
      const batch = new RequestBatch();
      for (let n = id; n < id + 100; n++) batch.add(n, 600_000, acquireOf(`d/${n}`));
      stream.raw.write(batch.finish());
    }
    await until('its share', () => open.length >= MAX_STREAM_RUNNING);
    // Others have their turn while it waits for room.
    const other = new StockStream(served.address);
    other.send([1, acquireOf('other')]);
    await until('the other', () => open.some(({ call }) => domainOf(call) === 'other'));
    expect(open.length).toBeLessThanOrEqual(MAX_STREAM_RUNNING + 1);
    expect(served.calls.size).toBe(open.length);
    let answered = 0;
    while (answered < total + 1) {
      await until('the next', () => open.length > answered);
      // What is known of it at a time is bounded: by the window, and a message.
      expect(open.length - answered).toBeLessThanOrEqual(MAX_STREAM_RUNNING + 1);
      for (; answered < open.length; answered++) answer(served, open[answered]);
    }
    await stream.until(total);
    expect(new Set(stream.ids).size).toBe(total);
    expect(stream.results.every(({ type }) => type === 'answer')).toBe(true);
  });

  it('refuses acquires that may wait beyond a number, and reads what comes behind them', async () => {
    const served = await serve(
      (event, calls) => {
        if (event.call.type === 'acquire') return;
        ANSWERING(event, calls);
      },
      '127.0.0.1:0',
      () => true,
    );
    const stream = new StockStream(served.address);
    for (let id = 0; id < MAX_STREAM_WAITING + 1_000; id += 1_000) {
      const batch = new RequestBatch();
      for (let n = id; n < id + 1_000; n++) batch.add(n, 600_000, acquireOf(`d/${n}`, { waitMs: 60_000, id: n }));
      stream.raw.write(batch.finish());
    }
    stream.send([999_999, releaseOf('a')]);
    await stream.until(1_001);
    const refused = stream.results.filter((result) => result.type === 'failure');
    expect(refused).toHaveLength(1_000);
    expect(refused[0]).toMatchObject({ failure: { reason: 'OVERLOADED', outcome: 'not-done' } });
    expect(stream.ids).toContain(999_999);
    expect(callsOf(served)).toHaveLength(MAX_STREAM_WAITING + 1);
  });
});

function tooMany(): Buffer {
  const batch = new RequestBatch();
  for (let n = 1; n <= 1_001; n++) batch.add(n, 1, releaseOf('a'));
  return batch.finish();
}

function twice(): Buffer {
  const batch = new RequestBatch();
  for (const id of [2, 3, 4, 4]) batch.add(id, 1, releaseOf('a'));
  return batch.finish();
}

it('an operation of a newer kind is refused alone', async () => {
  const served = await serve(ANSWERING);
  const stream = new StockStream(served.address);
  const bytes = protobuf.Writer.create();
  bytes.uint32(10).fork().uint32(8).uint32(1).uint32(74).fork().ldelim().ldelim();
  stream.raw.write(Buffer.from(bytes.finish()));
  expect(await stream.until(1)).toMatchObject([
    { id: 1, failure: { reason: 'INVALID_REQUEST', message: expect.stringContaining('exactly one of') as string } },
  ]);
});
