import { describe, expect, it } from 'vitest';
import { createLog, type LogLevel } from '../../src/node/log.js';

function record(level: LogLevel) {
  const lines: unknown[] = [];
  const log = createLog(level, { node: 'n1' }, { write: (line) => lines.push(JSON.parse(line)) });
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

  it('leaves out what is below the level, and never an audit line', () => {
    const { log, lines } = record('error');
    log.info('a');
    log.warn('b');
    log.error('c');
    log.audit('d');
    expect(lines).toMatchObject([{ level: 'error' }, { level: 'audit', message: 'd' }]);
  });
});
