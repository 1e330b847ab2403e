import { runTypeScript } from './sim/typescript.js';
await runTypeScript('test/sim/gate/tmp-cov.ts');
