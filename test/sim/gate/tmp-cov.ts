import { ENTRY } from '../runner/sim.js';
import { bundle, removeBundles } from '../runner/bundle.js';
import { Worker } from '../runner/pool.js';
import { drawParameters } from '../parameters.js';
export async function main(args: readonly string[], say: (line: string) => void): Promise<number> {
  const [from, count, only] = args;
  const worker = new Worker(await bundle(ENTRY));
  const totals = new Map<string, number>();
  let n = 0, grants = 0, ms = 0;
  for (let seed = Number(from); seed < Number(from) + Number(count); seed++) {
    const p = drawParameters(seed);
    const hard = p.faultWeights.length === 7;
    if (only === 'hard' && !hard) continue;
    const t = Date.now();
    const r = await worker.run(seed, {});
    ms += Date.now() - t;
    n++; grants += r.grants;
    if (r.failure) say(`seed ${seed} ${r.failure.code} ${r.failure.text.slice(0, 300)}`);
    for (const [k, v] of Object.entries(r.counts)) totals.set(k, (totals.get(k) ?? 0) + v);
  }
  say(`${n} seeds ${grants / n} grants ${ms / n} ms each`);
  for (const [k, v] of [...totals].sort()) if (/conflict|install|hiccup|tried|damage|leader isolated|isolated leader|write failed|grant applied/.test(k)) say(`${k} ${v}`);
  worker.close(); removeBundles();
  return 0;
}
