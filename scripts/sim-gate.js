/** `npm run sim:gate [-- --quick --only NAME --max-seeds N --judges relation]`: does the simulator find what we break? */
import { runTypeScript } from './sim/typescript.js';

await runTypeScript('test/sim/gate/gate.ts');
