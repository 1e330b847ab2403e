import { describe, expect, it } from 'vitest';
import { runChaos } from './chaos.js';

describe('relation', () => {
  it('x', async () => {
    const n = Number(process.env['H5_SEEDS'] ?? 20);
    const first = Number(process.env['H5_FIRST'] ?? 1);
    let steps = 0, grants = 0;
    for (let seed = first; seed < first + n; seed++) {
      const r = await runChaos(seed, 20_000);
      steps += r.steps; grants += r.grants;
      if (r.fault || r.error) console.log(seed, r.at, r.fault?.text ?? '', r.error?.message ?? '');
    }
    console.log({ steps, grants });
    expect(steps).toBeGreaterThan(0);
  }, 600_000);
});
