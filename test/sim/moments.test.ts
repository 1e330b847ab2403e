import { expect, it } from 'vitest';
import { Moments } from './moments.js';
import type { Step } from './observation.js';
import { Scheduler } from './scheduler.js';

const step = (at: number): Step => ({ at }) as Step;

it('meets the first step that passes, once, and nothing that comes too late', () => {
  const scheduler = new Scheduler();
  const moments = new Moments(scheduler);
  const met: string[] = [];
  moments.when(
    10,
    ({ at }) => at >= 5,
    () => met.push('five'),
  );
  moments.when(
    10,
    ({ at }) => at >= 20,
    () => met.push('late'),
  );
  for (const at of [1, 5, 6, 20]) {
    moments.stepped(step(at));
    while (scheduler.runNext(at));
    if (at === 1) expect(met).toEqual([]);
  }
  expect(met).toEqual(['five']);
});
