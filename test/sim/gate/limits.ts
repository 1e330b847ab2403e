/** Switches of the limits that an operator changes: what their entry does, to whom, and where it is kept. */
import type { Switch } from './switch.js';

const SOURCE = 'design 7 and 8, limits';

/** See the head of the file. */
export const LIMITS_SWITCHES: readonly Switch[] = [
  {
    name: 'limits-entry-ignored',
    area: 'lease',
    file: 'src/lease/limits.ts',
    text: '  setLimits(state, after);\n',
    replacement: '  if (change.queue === -1) setLimits(state, after);\n',
    rule: 'The entry sets the limits at its revision, on every member.',
    source: SOURCE,
  },
  {
    name: 'limits-taken-when-proposed',
    area: 'lease',
    file: 'src/replica/serving.ts',
    text: 'change: stateChange(call.change), by',
    replacement: 'change: { ...context.lease.limits, ...stateChange(call.change) }, by',
    rule: 'A change is of what is in force when its entry is applied, not of what its proposer saw.',
    source: SOURCE,
  },
  {
    name: 'lowered-limit-blocks-who-waits',
    area: 'lease',
    file: 'src/lease/hand-over.ts',
    text: 'if (queue === undefined || state.holding) return;',
    replacement: 'if (queue === undefined || state.holding || queue.length > state.limits.queue) return;',
    rule: 'Whoever waits is granted in its turn, however far a limit was lowered meanwhile.',
    source: SOURCE,
  },
  {
    name: 'old-limit-kept-for-waiters',
    area: 'lease',
    file: 'src/lease/limits.ts',
    text: 'const after = { ...before, ...change };',
    replacement: 'const after = { ...before, ...change, waitersPerPrincipal: before.waitersPerPrincipal };',
    rule: 'Every limit that the entry names is in force from its revision on.',
    source: SOURCE,
  },
  {
    name: 'limits-of-genesis-after-a-snapshot',
    area: 'storage',
    file: 'src/replica/applying.ts',
    text: 'createState(incoming.summary, genesis.history,',
    replacement: 'createState({ ...incoming.summary, limits: genesis.limits }, genesis.history,',
    rule: 'A snapshot brings the limits in force.',
    source: 'design 8, limits; design 6, snapshots',
  },
  {
    name: 'limits-of-genesis-after-a-start',
    area: 'storage',
    file: 'src/replica/replica.ts',
    text: 'createState(loaded.summary, genesis.history,',
    replacement: 'createState({ ...loaded.summary, limits: genesis.limits }, genesis.history,',
    rule: 'A start finds the limits in force in the table.',
    source: 'design 8, limits; design 6, state table',
  },
  {
    name: 'new-prefix-counted-from-nothing',
    area: 'lease',
    file: 'src/lease/quotas.ts',
    text: 'counts.prefixes.get(prefix) ?? below(state, prefix)',
    replacement: 'counts.prefixes.get(prefix) ?? { leases: 0, waiters: 0 * below(state, prefix).waiters }',
    rule: 'What lies below a prefix counts against its quota, also when it was there before the quota.',
    source: SOURCE,
  },
];
