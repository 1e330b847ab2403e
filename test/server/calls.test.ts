/** Every method, from the bytes of a stock client to the replica and back. */
import type { ClientUnaryCall } from '@grpc/grpc-js';
import { afterEach, describe, expect, it } from 'vitest';
import { failure } from '../../src/base/errors.js';
import type { Reason } from '../../src/base/errors.js';
import type { Domain } from '../../src/base/ids.js';
import { pathOf } from '../../src/wire/public-messages.js';
import type { CallType } from '../../src/wire/public-types.js';
import {
  ANSWERING,
  ANSWERS,
  CALLS,
  clientOf,
  endAll,
  HEADER,
  REQUEST_ID,
  sendBytes,
  sendCall,
  serve,
  SILENT,
  until,
} from './kit.js';
import { domainAnswer } from '../support/answers.js';

afterEach(endAll);

/** Answers of the cluster service that carry no header. */
const BARE = new Set<CallType>(['forceRelease', 'transferLeadership', 'changeLimits', 'getStateHash']);

describe('a call', () => {
  it.each(Object.values(CALLS))('$type reaches the replica as the client made it', async (call) => {
    const { address, events } = await serve(ANSWERING);
    await sendCall(clientOf(address), call);
    expect(events[0]).toEqual({
      type: 'call',
      id: 1,
      principal: { name: 'addr:127.0.0.1', authenticated: false },
      timeoutMs: 30_000,
      call,
    });
  });

  it.each(ANSWERS.map((answer, at) => [`${answer.type} ${at}`, answer] as const))(
    'brings back %s',
    async (_, answer) => {
      const { address } = await serve(({ id }, calls) => {
        calls.answer(id, HEADER, { type: 'answer', answer, revision: HEADER.revision });
      });
      const ended = await sendCall(clientOf(address), CALLS[answer.type]);
      const header = BARE.has(answer.type) ? undefined : HEADER;
      expect(ended).toEqual({ response: { header, answer, version: answer.type === 'getStatus' ? '1.2.3' : '' } });
    },
  );

  it('of Acquire without an id gets one, another each time', async () => {
    const { address, events } = await serve(ANSWERING);
    const client = clientOf(address);
    // domain = 1 "d", holder = 3 "h"
    const bytes = Uint8Array.of(0x0a, 1, 0x64, 0x1a, 1, 0x68);
    for (let sent = 0; sent < 2; sent++) await sendBytes(client, pathOf('acquire'), bytes);
    const ids = events.map((event) =>
      event.type === 'call' && event.call.type === 'acquire' ? event.call.requestId : '',
    );
    expect(new Set(ids).size).toBe(2);
    for (const id of ids) expect(id).toMatch(/^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/);
    expect(ids).not.toContain(REQUEST_ID);
  });

  it('is one of a thousand at once, each with its own answer', async () => {
    const { address, calls } = await serve(({ id, call }, table) => {
      // The last call answers all, the newest first.
      if (id < 1_000) return;
      for (let open = id; open >= 1; open--) {
        const answer = domainAnswer(`d/${open}` as Domain, undefined, open);
        expect(call.type).toBe('get');
        table.answer(open, HEADER, { type: 'answer', answer, revision: HEADER.revision });
      }
    });
    const client = clientOf(address);
    const all = await Promise.all(Array.from({ length: 1_000 }, () => sendCall(client, CALLS.get)));
    const seen = all.map((ended) =>
      'response' in ended && ended.response.answer.type === 'get' ? ended.response.answer.leftMs : 0,
    );
    expect(seen.toSorted((left, right) => left - right)).toEqual(Array.from({ length: 1_000 }, (_, at) => at + 1));
    expect(calls.size).toBe(0);
  });

  it('answered twice is answered once', async () => {
    const { address, calls, reported } = await serve((event, table) => {
      ANSWERING(event, table);
      ANSWERING(event, table);
    });
    const client = clientOf(address);
    expect(await sendCall(client, CALLS.get)).toHaveProperty('response');
    expect(await sendCall(client, CALLS.withdraw)).toHaveProperty('response');
    expect(reported).toEqual([]);
    expect(calls.size).toBe(0);
  });
});

describe('a client that goes away', () => {
  it('is told to the replica as a cancel; what is answered later goes nowhere', async () => {
    const { address, calls, events, reported } = await serve(SILENT);
    const client = clientOf(address);
    const sent: ClientUnaryCall[] = [];
    const ended = sendCall(client, CALLS.acquire, {}, (call) => sent.push(call));
    await until('the call is open', () => calls.size === 1);
    sent[0]?.cancel();
    expect(await ended).toMatchObject({ error: { code: 1 } });
    await until('the cancel', () => events.length === 2);
    expect(events[1]).toEqual({ type: 'cancel', id: 1 });
    calls.answer(1, HEADER, { type: 'failure', failure: failure('NO_LEADER', 'late') });
    expect(calls.size).toBe(0);
    expect(reported).toEqual([]);
  });

  it('with its connection takes all its calls along', async () => {
    const { address, calls, events } = await serve(SILENT);
    const client = clientOf(address);
    const ended = Promise.all([1, 2, 3].map(() => sendCall(client, CALLS.get)));
    await until('the calls are open', () => calls.size === 3);
    client.close();
    await ended;
    await until('the cancels', () => calls.size === 0);
    expect(events.slice(3).map((event) => (event.type === 'cancel' ? event.id : 0))).toEqual([1, 2, 3]);
  });

  it('after its answer is nobody’s business', async () => {
    const { address, events } = await serve(ANSWERING);
    const client = clientOf(address);
    await sendCall(client, CALLS.get);
    client.close();
    await sendCall(clientOf(address), CALLS.get);
    expect(events.map(({ type }) => type)).toEqual(['call', 'call']);
  });
});

describe('the deadline of a call', () => {
  async function timeoutOf(deadline: number | undefined): Promise<number> {
    const { address, events } = await serve(ANSWERING);
    await sendCall(clientOf(address), CALLS.get, deadline === undefined ? {} : { deadline });
    const [event] = events;
    return event?.type === 'call' ? event.timeoutMs : 0;
  }

  it('is handed on as what is left of it', async () => {
    const left = await timeoutOf(Date.now() + 60_000);
    expect(left).toBeGreaterThan(30_000);
    expect(left).toBeLessThanOrEqual(60_000);
  });

  it('is 30 s when there is none, and an hour when it is farther', async () => {
    expect(await timeoutOf(undefined)).toBe(30_000);
    expect(await timeoutOf(Date.now() + 86_400_000)).toBe(3_600_000);
  });

  it('ends the call when the replica does not, and cancels it there', async () => {
    const { address, calls, events } = await serve(SILENT);
    const ended = sendCall(clientOf(address), CALLS.get, { deadline: Date.now() + 300 });
    await until('the call is open', () => events.length > 0);
    expect(await ended).toMatchObject({ error: { code: 4 } });
    await until('the cancel', () => calls.size === 0);
    expect(events.map(({ type }) => type)).toEqual(['call', 'cancel']);
  });

  it('that is over ends the call, and opens nothing for longer than that', async () => {
    const { address, calls } = await serve(SILENT);
    expect(await sendCall(clientOf(address), CALLS.get, { deadline: Date.now() - 1 })).toMatchObject({
      error: { code: 4 },
    });
    await until('no call is open', () => calls.size === 0);
  });
});

describe('a failure', () => {
  it.each<[Reason, number, string | undefined]>([
    ['NO_LEADER', 14, '200'],
    ['REQUEST_ID_REUSED', 3, undefined],
    ['TIMED_OUT', 4, '50'],
    ['DISK_FULL', 8, '5000'],
    ['UNKNOWN_MEMBER', 5, undefined],
  ])('%s has its code, its message and its trailers', async (reason, code, delay) => {
    const fault = failure(reason, 'für Leute: 100 %\nnext line');
    const { address } = await serve(({ id }, calls) => {
      calls.answer(id, HEADER, { type: 'failure', failure: fault });
    });
    const ended = await sendCall(clientOf(address), CALLS.get);
    if (!('error' in ended)) throw new Error('an error was expected');
    expect(ended.error).toMatchObject({ code, details: 'für Leute: 100 %\nnext line' });
    expect(ended.error.metadata.get('fencepost-reason')).toEqual([reason]);
    expect(ended.error.metadata.get('fencepost-outcome')).toEqual([fault.outcome]);
    expect(ended.error.metadata.get('retry-delay-ms')).toEqual(delay === undefined ? [] : [delay]);
    expect(ended.error.metadata.get('fencepost-revision')).toEqual([]);
    expect(ended.error.metadata.get('grpc-status-details-bin')).toHaveLength(1);
  });

  it('REQUEST_TOO_OLD brings a revision', async () => {
    const { address } = await serve(({ id }, calls) => {
      calls.answer(id, HEADER, { type: 'failure', failure: failure('REQUEST_TOO_OLD', 'old', { revision: 77 }) });
    });
    const ended = await sendCall(clientOf(address), CALLS.acquire);
    expect('error' in ended && ended.error.metadata.get('fencepost-revision')).toEqual(['77']);
  });

  it('between nodes never reaches a client as an answer', async () => {
    const { address } = await serve(({ id }, calls) => {
      calls.answer(id, HEADER, { type: 'notLeader', outcome: 'not-done' });
    });
    const ended = await sendCall(clientOf(address), CALLS.get);
    expect(ended).toMatchObject({ error: { code: 13 } });
    expect('error' in ended && ended.error.metadata.get('fencepost-outcome')).toEqual(['unknown']);
  });
});

describe('a defect', () => {
  it('while a call is handed over is answered INTERNAL and reported; no call stays open', async () => {
    const { address, calls, reported } = await serve(() => {
      throw new Error('boom');
    });
    const ended = await sendCall(clientOf(address), CALLS.get);
    expect(ended).toMatchObject({ error: { code: 13 } });
    expect('error' in ended && ended.error.metadata.get('fencepost-reason')).toEqual(['INTERNAL']);
    expect('error' in ended && ended.error.details).not.toContain('boom');
    expect(reported).toMatchObject([{ message: 'boom' }]);
    expect(calls.size).toBe(0);
  });

  it('in the text of an answer is answered INTERNAL and reported, and does not reach the replica', async () => {
    const thrown: unknown[] = [];
    const { address, reported } = await serve(({ id }, calls) => {
      setImmediate(() => {
        try {
          // Half of a surrogate pair cannot be sent.
          calls.answer(id, HEADER, { type: 'failure', failure: failure('NO_LEADER', '\ud800') });
        } catch (error) {
          thrown.push(error);
        }
      });
    });
    expect(await sendCall(clientOf(address), CALLS.get)).toMatchObject({ error: { code: 13 } });
    expect(reported).toHaveLength(1);
    expect(thrown).toEqual([]);
  });

  it('of the replica that answers another call than was made is an assertion, never a response', async () => {
    const thrown: unknown[] = [];
    const { address, calls } = await serve(SILENT);
    const ended = sendCall(clientOf(address), CALLS.release, { deadline: Date.now() + 1_000 });
    await until('the call is open', () => calls.size === 1);
    try {
      calls.answer(1, HEADER, { type: 'answer', answer: { type: 'withdraw' }, revision: HEADER.revision });
    } catch (error) {
      thrown.push(error);
    }
    expect(thrown).toMatchObject([{ name: 'AssertionFailed', message: 'a call of release was answered by withdraw' }]);
    expect(await ended).toMatchObject({ error: { code: 4 } });
  });
});

describe('a node that belongs to no history', () => {
  it('shows what it waits for', async () => {
    const { address } = await serve();
    const ended = await sendCall(clientOf(address), CALLS.getStatus);
    expect(ended).toMatchObject({
      response: {
        header: { cluster: 'test', incarnation: '', revision: 0, node: 'n1', leader: undefined },
        answer: {
          type: 'getStatus',
          node: 'n1',
          role: 'stopped',
          members: [],
          alarms: ['waits for n2', 'waits for n3'],
        },
        version: '1.2.3',
      },
    });
  });

  it.each(Object.values(CALLS).filter(({ type }) => type !== 'getStatus'))(
    'answers NOT_FORMED to $type',
    async (call) => {
      const { address } = await serve();
      const ended = await sendCall(clientOf(address), call);
      expect(ended).toMatchObject({
        error: { code: 14, details: 'node n1 belongs to no history yet: waits for n2; waits for n3' },
      });
      expect('error' in ended && ended.error.metadata.get('fencepost-reason')).toEqual(['NOT_FORMED']);
      expect('error' in ended && ended.error.metadata.get('fencepost-outcome')).toEqual(['not-done']);
    },
  );
});
