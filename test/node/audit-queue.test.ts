import { describe, expect, it } from 'vitest';
import { AuditQueue, MAX_AUDIT_DETAILS, MAX_AUDIT_LINES } from '../../src/node/audit-queue.js';

/** A queue whose writes end when the test says so. */
function setUp() {
  const written: string[] = [];
  const soon: (() => void)[] = [];
  let formatted = 0;
  let done: ((error: Error | undefined) => void) | undefined;
  const queue = new AuditQueue<string>({
    format: (line) => {
      formatted++;
      return `${line}\n`;
    },
    dropped: (count) => `dropped ${count}`,
    write: (text, end) => {
      if (done !== undefined) throw new Error('two writes at once');
      written.push(text);
      done = end;
    },
    soon: (work) => soon.push(work),
  });
  return {
    queue,
    written,
    formattedLines: () => formatted,
    runSoon: () => {
      for (const work of soon.splice(0)) work();
    },
    end: (error?: Error) => {
      const call = done;
      done = undefined;
      if (call === undefined) throw new Error('nothing is being written');
      call(error);
    },
    isWriting: () => done !== undefined,
  };
}

type Setup = ReturnType<typeof setUp>;

/** Ends every write until there is none. */
function drain({ isWriting, end, runSoon }: Setup): void {
  runSoon();
  while (isWriting()) end();
}

describe('audit lines', () => {
  it('are neither written nor formatted when they are added', () => {
    const { queue, written, formattedLines, runSoon } = setUp();
    queue.add('a', false);
    queue.add('b', true);
    expect([written, formattedLines()]).toEqual([[], 0]);
    runSoon();
    expect(written).toEqual(['a\nb\n']);
  });

  it('go out in order, whole lines up to 4096 bytes at a time, one write after the other', () => {
    const setup = setUp();
    const lines = Array.from({ length: 1_000 }, (_, at) => `${String(at).padStart(6, '0')} ${'é'.repeat(at % 90)}`);
    for (const line of lines) setup.queue.add(line, false);
    drain(setup);
    expect(setup.written.join('')).toBe(`${lines.join('\n')}\n`);
    for (const text of setup.written) {
      expect(Buffer.byteLength(text)).toBeLessThanOrEqual(4_096);
      expect(text.endsWith('\n')).toBe(true);
    }
    expect(setup.written.length).toBeLessThan(60);
  });

  it('longer than that go out alone', () => {
    const setup = setUp();
    for (const line of ['a', 'x'.repeat(5_000), 'b']) setup.queue.add(line, false);
    drain(setup);
    expect(setup.written).toEqual(['a\n', `${'x'.repeat(5_000)}\n`, 'b\n']);
  });

  it('are taken while others are being written', () => {
    const setup = setUp();
    setup.queue.add('a', false);
    setup.runSoon();
    setup.queue.add('b', false);
    setup.end();
    expect(setup.written).toEqual(['a\n', 'b\n']);
    setup.end();
    expect(setup.isWriting()).toBe(false);
    setup.queue.add('c', false);
    drain(setup);
    expect(setup.written).toEqual(['a\n', 'b\n', 'c\n']);
  });

  it('do not grow without bound when nobody reads; how many were dropped is said, and losses come before details', () => {
    const setup = setUp();
    for (let at = 0; at < 2 * MAX_AUDIT_DETAILS; at++) setup.queue.add(`detail ${at}`, true);
    for (let at = 0; at < MAX_AUDIT_LINES; at++) setup.queue.add(`loss ${at}`, false);
    drain(setup);
    const lines = setup.written.join('').trimEnd().split('\n');
    expect(lines[0]).toBe(`dropped ${2 * (MAX_AUDIT_LINES - MAX_AUDIT_DETAILS)}`);
    expect(lines.filter((line) => line.startsWith('detail'))).toHaveLength(MAX_AUDIT_DETAILS);
    expect(lines.filter((line) => line.startsWith('loss'))).toHaveLength(MAX_AUDIT_LINES - MAX_AUDIT_DETAILS);
    expect(lines).toHaveLength(MAX_AUDIT_LINES + 1);
  });

  it('that could not be written are counted, and nothing is tried again and again for it', () => {
    const setup = setUp();
    setup.queue.add('a', false);
    setup.queue.add('b', false);
    setup.runSoon();
    setup.end(new Error('EPIPE'));
    expect(setup.isWriting()).toBe(false);
    setup.queue.add('c', false);
    drain(setup);
    expect(setup.written).toEqual(['a\nb\n', 'dropped 2\nc\n']);
  });

  it('idle resolves when all are written', async () => {
    const setup = setUp();
    await setup.queue.idle();
    setup.queue.add('a', false);
    let idle = false;
    const waiting = setup.queue.idle().then(() => (idle = true));
    setup.runSoon();
    await Promise.resolve();
    expect(idle).toBe(false);
    setup.end();
    await waiting;
  });

  it('rest gives what is not being written, once', () => {
    const setup = setUp();
    setup.queue.add('a', false);
    setup.runSoon();
    setup.queue.add('b', false);
    setup.queue.add('c', false);
    expect(setup.queue.rest()).toBe('b\nc\n');
    expect(setup.queue.rest()).toBe('');
    setup.end();
    expect(setup.written).toEqual(['a\n']);
  });
});
