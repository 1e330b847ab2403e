/** `npm run sim [-- --seeds N --from S --seed S --without 3,5 …]`: the whole-cluster simulator on all cores. */
import { runTypeScript } from './sim/typescript.js';

await runTypeScript('test/sim/runner/sim.ts');
