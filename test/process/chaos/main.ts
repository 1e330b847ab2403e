/** The command: `npm run chaos -- --minutes N [--seed S] [--nodes 3|5]`. Exit code 1 on any violation. */
import { randomInt } from 'node:crypto';
import { join, resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { now } from './clock.js';
import { runChaos } from './run.js';
import type { ChaosResult } from './run.js';

/** In a run this long every fault must have happened, in minutes. */
const LONG = 5;

const { values } = parseArgs({
  options: {
    minutes: { type: 'string', default: '5' },
    seed: { type: 'string' },
    nodes: { type: 'string', default: '3' },
  },
});
const minutes = Number(values.minutes);
const nodes = Number(values.nodes);
const seed = values.seed === undefined ? randomInt(2 ** 32) : Number(values.seed);
if (!(minutes > 0) || ![3, 5].includes(nodes) || !Number.isSafeInteger(seed)) {
  console.error('npm run chaos -- [--minutes N] [--seed S] [--nodes 3|5]');
  process.exit(2);
}

const end = new AbortController();
let interruptedAt: number | undefined;
for (const signal of ['SIGINT', 'SIGTERM'] as const) {
  process.on(signal, () => {
    // npm may pass on what the terminal has sent as well; a second one of a person ends everything at once.
    if (interruptedAt !== undefined && now() > interruptedAt + 1_000) process.exit(130);
    interruptedAt ??= now();
    console.log(`${signal}: ending`);
    end.abort();
  });
}

console.log(`chaos: ${minutes} minutes, ${nodes} nodes, seed ${seed}`);
const here = import.meta.dirname;
const result = await runChaos({
  seed,
  nodes,
  ms: minutes * 60_000,
  package: resolve(here, '../..'),
  programs: { worker: join(here, 'worker.mjs'), resource: join(here, 'resource.mjs') },
  print: console.log,
  end,
});
// Connections to nodes that were killed are not worth waiting for.
process.exit(report(result) ? 0 : 1);

/** Prints the result; true when nothing is wrong. */
function report({ violations, counts, faults, skipped, kept, tookMs }: ChaosResult): boolean {
  const { losses, ...numbers } = counts;
  console.log('\nfaults');
  for (const [name, count] of faults) console.log(`  ${String(count).padStart(5)}  ${name}`);
  for (const text of skipped) console.log(`skipped  ${text}`);
  console.log(
    `clients\n  ${Object.entries(numbers)
      .map(([name, count]) => `${name} ${count}`)
      .join(', ')}`,
  );
  console.log(`leases lost\n  ${[...losses].map(([why, count]) => `${why} ${count}`).join(', ') || 'none'}`);
  const wrong = [...violations];
  if (counts.grants === 0 || counts.writes === 0 || counts.observed === 0)
    wrong.push('nothing was granted, written or observed: this run says nothing');
  if (process.env['FENCEPOST_FORBID_SKIPS'] === '1')
    wrong.push(...skipped.map((text) => `nothing may be skipped here: ${text}`));
  const never = [...faults].filter(([, count]) => count === 0).map(([name]) => name);
  // The first violation ends a run: it has not come to all of them then.
  if (minutes >= LONG && interruptedAt === undefined && violations.length === 0 && never.length > 0)
    wrong.push(`never happened: ${never.join(', ')}`);
  for (const text of wrong.slice(0, 20)) console.log(`VIOLATION  ${text}`);
  if (kept !== undefined) console.log(`the traces are in ${kept}`);
  console.log(
    `verdict after ${Math.round(tookMs / 1_000)} s: ${wrong.length === 0 ? 'nothing violated' : `${wrong.length} violations`}`,
  );
  return wrong.length === 0;
}
