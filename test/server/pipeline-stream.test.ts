/** One stream without a connection: what it reads, when it stops reading, who gets a turn. */
import { describe, expect, it } from 'vitest';
import type { Call, Header } from '../../src/base/api.js';
import { MAX_NODE_RUNNING, Shares } from '../../src/server/pipeline-shares.js';
import { MAX_STREAM_RUNNING, PipelineStream, STREAM_WINDOW } from '../../src/server/pipeline-stream.js';
import { RequestBatch } from '../../src/wire/public-pipeline.js';
import type { OperationOutcome } from '../../src/wire/public-pipeline.js';
import { readResults } from '../../src/wire/public-pipeline-read.js';
import { parseRequest } from '../../src/wire/public-parse.js';
import type { PipelineCall } from '../../src/wire/public-pipeline-messages.js';
import { answerTo, HEADER } from './kit.js';
import { acquireOf } from './pipeline-kit.js';

const LIMITS = { minTtlMs: 3_000, maxTtlMs: 86_400_000, defaultTtlMs: 15_000 };

/** A stream whose other end is this object. */
class Bench {
  readonly under: { readonly call: Call; readonly answered: (header: Header, outcome: OperationOutcome) => void }[] =
    [];
  readonly written: Buffer[] = [];
  /** Whether the stream takes more after a write. */
  room = true;
  paused = false;
  ended = false;
  watched = 0;
  readonly stream: PipelineStream;
  #id = 0;
  #sent = 0;

  constructor(shares = new Shares()) {
    const inlet = {
      write: (bytes: Buffer) => {
        this.written.push(bytes);
        return this.room;
      },
      pause: () => (this.paused = true),
      resume: () => (this.paused = false),
      end: () => (this.ended = true),
    };
    this.stream = new PipelineStream(inlet, {
      shares,
      parse: ({ request }) => {
        if (request === undefined) throw new Error('a request was expected');
        const parsed = parseRequest(request, LIMITS);
        if (!('ok' in parsed)) throw new Error(parsed.faults.join());
        return parsed.ok as PipelineCall;
      },
      open: (call, _timeoutMs, answered) => {
        this.under.push({ call, answered });
        return ++this.#id;
      },
      cancel: () => undefined,
      isWaiting: () => false,
      header: () => HEADER,
      watch: () => this.watched++,
    });
  }

  /** Sends so many acquires, each of a domain of its own. */
  async send(count: number): Promise<void> {
    for (let left = count; left > 0; left -= 1_000) {
      const batch = new RequestBatch();
      for (let n = 0; n < Math.min(left, 1_000); n++) {
        this.#sent++;
        batch.add(this.#sent, 600_000, acquireOf(`d/${this.#sent}`));
      }
      expect(this.stream.receive(batch.finish())).toBeUndefined();
    }
    await turn();
  }

  async answer(count: number): Promise<void> {
    for (const { call, answered } of this.under.splice(0, count)) {
      answered(HEADER, { type: 'answer', answer: answerTo(call) as never });
    }
    await turn();
  }

  get results(): number {
    return this.written.reduce((sum, bytes) => sum + readResults(bytes).results.length, 0);
  }
}

const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

describe('reading', () => {
  it('stops at the window and goes on at half of it', async () => {
    const bench = new Bench();
    await bench.send(STREAM_WINDOW - 1);
    expect(bench.paused).toBe(false);
    await bench.send(1);
    expect(bench.paused).toBe(true);
    await bench.answer(STREAM_WINDOW / 2);
    expect(bench.paused).toBe(true);
    await bench.answer(1);
    expect(bench.paused).toBe(false);
    await bench.answer(STREAM_WINDOW);
    expect(bench.results).toBe(STREAM_WINDOW);
  });

  it('stops for results that the client does not take, and goes on when it does', async () => {
    const bench = new Bench();
    bench.room = false;
    await bench.send(1);
    await bench.answer(1);
    expect(bench.results).toBe(1);
    await bench.send(STREAM_WINDOW);
    for (let n = 0; n < 4; n++) await bench.answer(MAX_STREAM_RUNNING);
    expect(bench.paused).toBe(true);
    expect(bench.results).toBe(1);
    bench.stream.finish();
    expect(bench.ended).toBe(false);
    bench.room = true;
    bench.stream.drained();
    expect(bench.paused).toBe(false);
    expect(bench.results).toBe(STREAM_WINDOW + 1);
    expect(bench.ended).toBe(true);
  });
});

describe('turns', () => {
  it('one stream has its share under way, and others begin beside it', async () => {
    const shares = new Shares();
    const greedy = new Bench(shares);
    const modest = new Bench(shares);
    await greedy.send(10_000);
    await modest.send(1);
    expect([greedy.under.length, modest.under.length]).toEqual([MAX_STREAM_RUNNING, 1]);
  });

  it('when the node is full, streams take turns for what comes free', async () => {
    const shares = new Shares();
    const greedy = Array.from({ length: 5 }, () => new Bench(shares));
    for (const bench of greedy) await bench.send(10_000);
    expect(shares.running).toBe(MAX_NODE_RUNNING);
    const modest = new Bench(shares);
    await modest.send(3);
    const starved = greedy.findIndex((bench) => bench.under.length === 0);
    expect(starved).toBe(4);
    expect(modest.under).toHaveLength(0);
    // One turn for the stream that waited longest, the next one for the newcomer.
    await greedy[0]?.answer(67);
    expect(greedy[4]?.under).toHaveLength(64);
    expect(modest.under).toHaveLength(3);
    expect(shares.running).toBe(MAX_NODE_RUNNING);
  });

  it('a stream that is gone leaves its share to the others', async () => {
    const shares = new Shares();
    const greedy = Array.from({ length: 5 }, () => new Bench(shares));
    for (const bench of greedy) await bench.send(3_000);
    greedy[0]?.stream.drop();
    await turn();
    expect(greedy[4]?.under).toHaveLength(MAX_STREAM_RUNNING);
    for (const bench of greedy) bench.stream.drop();
    expect(shares.running).toBe(0);
  });
});
