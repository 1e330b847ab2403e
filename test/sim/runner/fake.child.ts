/** A stand-in for the simulator, for the tests of the runner: seeds whose outcome is known. */
import type { RunOptions, RunResult } from '../result.js';
import { serve } from './worker.js';

let runs = 0;

function fail(text: string): never {
  throw new Error(text);
}

async function runFake(seed: number, options: RunOptions): Promise<RunResult> {
  runs++;
  await Promise.resolve();
  if (seed === 13) process.exit(3);
  if (seed === 14) for (;;);
  if (seed === 15) fail('this run broke');
  const faults = Array.from({ length: 12 }, (_, number) => `${number} fault of kind ${number % 3}`);
  const has = (number: number): boolean => options.without?.has(number) !== true;
  // Seed 7 fails as long as faults 3 and 8 are both in it.
  const failed = seed === 7 && has(3) && has(8);
  return {
    seed,
    failure: failed ? { code: 'ES', text: 'two leaders in term 2', by: 'check', at: 1_234.5 } : undefined,
    // Seed 21 is not deterministic.
    digest: seed === 21 ? `${process.pid}` : `digest ${seed}`,
    events: 2_000,
    grants: 30,
    counts: { crash: 1, never: 0, runs },
    trace: failed || options.trace === true ? ['elect B', 'crash A'] : [],
    faults: faults.filter((_, number) => has(number)),
  };
}

serve(runFake);
