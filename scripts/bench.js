/** `npm run bench [-- NAME …]`: installs, builds, prints the figures of all benchmarks, or of those that are named. */
import { build, checkNode, install } from './prepare.js';

checkNode();
install();
build();
const { benchCycles } = await import('./bench/cycles.js');
const { benchExpiry } = await import('./bench/expiry.js');
const { benchFailover } = await import('./bench/failover.js');
const { benchGuards } = await import('./bench/guards.js');
const { benchHandOver } = await import('./bench/hand-over.js');
const { benchHeap } = await import('./bench/heap.js');
const { benchMachine } = await import('./bench/machine.js');
const { benchManyLeases } = await import('./bench/many-leases.js');
const { benchMemory } = await import('./bench/memory.js');
const { benchPipeline } = await import('./bench/pipeline.js');
const { benchTakeover } = await import('./bench/takeover.js');

/** @type {Readonly<Record<string, () => Promise<object[]>>>} */
const BENCHES = {
  machine: benchMachine,
  cycles: benchCycles,
  pipeline: benchPipeline,
  failover: benchFailover,
  leases: benchManyLeases,
  heap: benchHeap,
  handover: benchHandOver,
  memory: benchMemory,
  takeover: benchTakeover,
  expiry: benchExpiry,
  guards: benchGuards,
};

const asked = process.argv.slice(2);
const unknown = asked.filter((name) => !(name in BENCHES));
if (unknown.length > 0) {
  console.error(`no benchmark is called ${unknown.join(', ')}; there are ${Object.keys(BENCHES).join(', ')}`);
  process.exit(2);
}
for (const [name, bench] of Object.entries(BENCHES)) {
  if (asked.length > 0 && !asked.includes(name)) continue;
  console.log(`\n${name}`);
  console.table(await bench());
}
