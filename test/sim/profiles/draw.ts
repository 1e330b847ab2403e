/**
 * Runs that are about one thing: swarm testing once more, for rules that matter for a few milliseconds only. A profile
 * changes what `drawParameters` drew; what it leaves alone is as in any other run.
 */
import { stream, weighted } from '../chance.js';
import { drawParameters } from '../parameters.js';
import type { Parameters } from '../parameters.js';
import { hardOnDisks } from './disks.js';
import { elections } from './elections.js';
import { endings } from './endings.js';
import { forming } from './forming.js';
import { snapshots } from './snapshots.js';
import { transfer } from './transfer.js';

/** In 16 seeds; the rest are runs about everything. */
const PROFILES = [
  ['everything', 6],
  ['forming', 2],
  ['transfer', 2],
  ['disks', 2],
  ['endings', 2],
  ['elections', 1],
  ['snapshots', 1],
] as const;

/** The parameters of `seed`: those drawn, or what the profile of the seed makes of them. */
export function parametersOf(seed: number): Parameters {
  const drawn = drawParameters(seed);
  const random = stream(seed, 'profile');
  switch (weighted(random, PROFILES)) {
    case 'everything':
      return drawn;
    case 'forming':
      return forming(random, drawn);
    case 'transfer':
      return transfer(random, drawn);
    case 'disks':
      return hardOnDisks(random, drawn);
    case 'endings':
      return endings(random, drawn);
    case 'elections':
      return elections(random, drawn);
    case 'snapshots':
      return snapshots(random, drawn);
  }
}
