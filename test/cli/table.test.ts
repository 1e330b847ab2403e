import { describe, expect, it } from 'vitest';
import { readableLine } from '../../src/cli/log-line.js';
import { pairs, table } from '../../src/cli/table.js';

const ESCAPE = String.fromCharCode(27);

describe('table', () => {
  it('sets numbers to the right and leaves no blanks at the end of a line', () => {
    const text = table(
      [{ title: 'name' }, { title: 'lag', numeric: true }, { title: 'note' }],
      [
        ['n1', '5', ''],
        [{ text: 'n10', tone: 'bad' }, '1200', 'slow'],
      ],
      false,
    );
    expect(text).toBe('NAME   LAG  NOTE\nn1       5\nn10   1200  slow');
  });

  it('colours the text and not the padding, so that columns stay in line', () => {
    const plain = table([{ title: 'a' }, { title: 'b' }], [[{ text: 'x', tone: 'good' }, 'y']], false);
    const coloured = table([{ title: 'a' }, { title: 'b' }], [[{ text: 'x', tone: 'good' }, 'y']], true);
    expect(coloured).toContain(`${ESCAPE}[32mx${ESCAPE}[39m  y`);
    expect(coloured.replaceAll(new RegExp(`${ESCAPE}\\[\\d+m`, 'g'), '')).toBe(plain);
  });

  it('is empty without rows', () => {
    expect(pairs([], false)).toBe('');
  });
});

describe('readableLine', () => {
  it('shows a line of the log without what every line has', () => {
    const line = JSON.stringify({ level: 'warn', time: 'T', node: 'n1', cluster: 'c', term: 7, message: 'leads' });
    expect(readableLine(line, false)).toBe('warn  leads term=7');
  });

  it('cuts fields that would fill the screen', () => {
    const line = JSON.stringify({ level: 'info', message: 'starting', stack: 'x'.repeat(500) });
    expect(readableLine(line, false)).toMatch(/^info {2}starting stack=x+…$/);
    expect(readableLine(line, false).length).toBeLessThan(140);
  });

  it.each(['not json', '{"level":30}', '[]', 'null', '"text"', ''])('passes %j on as it is', (line) => {
    expect(readableLine(line, false)).toBe(line);
  });
});
