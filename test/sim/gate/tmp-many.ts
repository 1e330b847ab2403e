import { judge } from './gate.js';
import { SWITCHES } from './switches.js';
import { removeBundles } from '../runner/bundle.js';
export async function main(args: readonly string[], say: (line: string) => void): Promise<number> {
  const [max, ...names] = args;
  for (const name of names) {
    const each = SWITCHES.find((s) => s.name === name);
    if (!each) { say(`no ${name}`); continue; }
    const { blind, ...rest } = each;
    const t = Date.now();
    const v = await judge(rest as never, { judges: 'all', maxSeeds: Number(max), quick: true });
    say(`${name}: ${v.by ?? 'NOT CAUGHT'} after ${v.seeds.join(',')} ${v.beside.join(';')} ${((Date.now()-t)/1000).toFixed(0)}s`);
  }
  removeBundles();
  return 0;
}
