import { describe, expect, it } from 'vitest';
import { createLog, type LogLevel } from '../../src/node/log.js';

function record(level: LogLevel) {
  const lines: unknown[] = [];
  const log = createLog(
    level,
    { node: 'n1' },
    {
      write: (chunk) => {
        for (const line of chunk.trimEnd().split('\n')) lines.push(JSON.parse(line));
      },
    },
  );
  return { log, lines };
}

describe('createLog', () => {
  it('writes one JSON line an event, with the node and the fields', () => {
    const { log, lines } = record('info');
    log.warn('disk is slow', { ms: 250 });
    expect(lines).toEqual([
      { level: 'warn', time: expect.any(String) as string, node: 'n1', ms: 250, message: 'disk is slow' },
    ]);
  });

  it('leaves out what is below the level, and never an audit line', async () => {
    const { log, lines } = record('error');
    log.info('a');
    log.warn('b');
    log.error('c');
    log.audit('d');
    await log.flush();
    expect(lines).toMatchObject([{ level: 'error' }, { level: 'audit', message: 'd' }]);
  });

  it('writes an audit line after the call, with the time of the call', async () => {
    const { log, lines } = record('info');
    const before = Date.now();
    log.audit('lease expired', { domain: 'a\nb', token: 5 });
    const after = Date.now();
    expect(lines).toEqual([]);
    while (Date.now() < after + 5);
    await log.flush();
    expect(lines).toEqual([
      {
        level: 'audit',
        time: expect.any(String) as string,
        node: 'n1',
        domain: 'a\nb',
        token: 5,
        message: 'lease expired',
      },
    ]);
    const at = Date.parse((lines[0] as { time: string }).time);
    expect(at).toBeGreaterThanOrEqual(before);
    expect(at).toBeLessThanOrEqual(after);
  });

  it('flushNow writes what waits before the process ends', () => {
    const { log, lines } = record('info');
    log.audit('a');
    log.audit('b');
    log.flushNow();
    expect(lines).toMatchObject([{ message: 'a' }, { message: 'b' }]);
    log.flushNow();
    expect(lines).toHaveLength(2);
  });
});
