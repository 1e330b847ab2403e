import type { NodeConfig } from '../../node/config.js';
import { FIELD_NAMES, FIELDS, environmentName, flagName } from '../../node/config-fields.js';
import { loadConfig } from '../../node/load-config.js';
import { runNode } from '../../node/main.js';
import type { CommandSpec } from '../command.js';

const VALUES = {
  text: 'TEXT',
  integer: 'NUMBER',
  members: 'ID=HOST:PORT,…',
  quotas: 'PREFIX=LEASES/WAITERS,…',
  boolean: undefined,
} as const;
const fieldOptions = FIELD_NAMES.map((name) => {
  const value = VALUES[FIELDS[name].kind];
  const flag = flagName(name).slice(2);
  return value === undefined ? { flag, about: FIELDS[name].about } : { flag, value, about: FIELDS[name].about };
});

/** `fencepost start`. */
export const spec: CommandSpec = {
  operands: '',
  options: [{ flag: 'config', value: 'FILE', about: 'JSON file with these settings' }, ...fieldOptions],
  notes: `Settings come from the file, then from ${environmentName('cluster')} and so on, then from flags; the later wins.`,
  exitCodes: `Exit codes: 0 stopped in order; 1 the data directory or the other members refuse it;\n2 configuration or a port in use; 70 a defect; 74 a failed write to disk.`,
  async run(input, io) {
    const file = input.text('config');
    const flags: Partial<Record<keyof NodeConfig, string | boolean>> = {};
    for (const name of FIELD_NAMES) {
      const value = input.value(flagName(name).slice(2));
      if (value !== undefined) flags[name] = value;
    }
    input.refuseRest();
    return await runNode(loadConfig({ file, environment: io.environment, flags, usageFaults: input.faults }));
  },
};
