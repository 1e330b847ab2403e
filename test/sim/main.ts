/** What a worker process of the simulator runs; see `runner/`. */
import { runSeed } from './run.js';
import { serve } from './runner/worker.js';

serve(runSeed);
