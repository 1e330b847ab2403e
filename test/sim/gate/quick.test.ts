/** The quick version of `npm run sim:gate`: the switches that are caught within a few seeds. */
import { expect, it } from 'vitest';
import { main } from './gate.js';

it('the quick switches are caught', async () => {
  const lines: string[] = [];
  const code = await main(['--quick', '--clean-seeds', '20', '--max-seeds', '40', '--jobs', '2'], (line) => {
    lines.push(line);
  });
  const text = lines.join('\n');
  expect(code, text).toBe(0);
  expect(text).toMatch(/(\d+) of \1 switches caught, 0 known/);
}, 240_000);
