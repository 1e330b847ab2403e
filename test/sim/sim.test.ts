/** The quick version of `npm run sim`: some seeds of the whole cluster, and that a seed fixes everything. */
import { describe, expect, it } from 'vitest';
import { main } from './runner/sim.js';

/** Seeds of one run of the tests; `npm run sim` runs more. */
const SEEDS = 80;
const TIMEOUT_MS = 240_000;

async function simulate(...args: string[]): Promise<string> {
  const lines: string[] = [];
  const code = await main(args, (line) => {
    lines.push(line);
  });
  const text = lines.join('\n');
  expect(code, text).toBe(0);
  return text;
}

describe('the simulated cluster', () => {
  it(
    `holds in ${SEEDS} seeds`,
    async () => {
      const text = await simulate('--seeds', String(SEEDS), '--jobs', '2');
      expect(text).toContain(`${SEEDS} seeds from 1 in`);
    },
    TIMEOUT_MS,
  );

  it.each([1, 2, 3, 4, 5, 6])(
    'does the same again in seed %i',
    async (seed) => {
      const text = await simulate('--seed', String(seed));
      expect(text).toMatch(/digest [0-9a-f]{16}, twice/);
    },
    TIMEOUT_MS,
  );
});
