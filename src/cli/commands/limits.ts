import type { LimitsChange, PrefixQuota, SharedLimits } from '../../base/shared-limits.js';
import { LIMIT_NAMES, LIMIT_RANGES, quotaFaults } from '../../base/shared-limits.js';
import { FIELDS, flagName, readText } from '../../node/config-fields.js';
import type { Cluster } from '../cluster.js';
import type { CommandSpec } from '../command.js';
import { CLUSTER_OPTIONS, readEndpoints, withCluster } from '../endpoints.js';
import type { Input } from '../input.js';
import { EXIT, type Io } from '../io.js';
import { print } from '../print.js';
import { type Cell, toned } from '../table.js';
import { ask } from './status.js';

const NAMES = [...LIMIT_NAMES, 'prefixQuotas'] as const;
const FLAGS = NAMES.map((name) => flagName(name).slice(2));

/** `fencepost limits` and `fencepost limits set …`. */
export const spec: CommandSpec = {
  operands: '[set]',
  options: [
    ...NAMES.map((name) => ({
      flag: flagName(name).slice(2),
      value: name === 'prefixQuotas' ? 'PREFIX=LEASES/WAITERS,…|none' : 'NUMBER',
      about: `with set: ${FIELDS[name].about.replace('when forming: ', '')}`,
    })),
    ...CLUSTER_OPTIONS,
  ],
  notes:
    'Shows the limits that all nodes share, as the node that has applied most knows them. With set and at least one flag,\nchanges those that are named and leaves the others; a list of prefixes takes the place of the whole list. What is held\nand waits stays, also where a limit is now lower: only new requests are refused. Set the same in the configuration of\neach node, or it says that it is configured otherwise.',
  exitCodes: 'Exit codes: 0 shown or set; 2 wrong usage; 3 the cluster did not answer or refused.',
  async run(input, io) {
    const operand = input.optionalOperand();
    if (operand !== undefined && operand !== 'set')
      input.fault(`limits takes set or nothing, not ${JSON.stringify(operand)}`);
    const change = readChange(input);
    const given = FLAGS.filter((flag) => input.value(flag) !== undefined);
    if (operand === 'set' && given.length === 0) input.fault(`set needs at least one of --${FLAGS.join(', --')}`);
    if (operand === undefined && given.length > 0) input.fault(`--${given[0] ?? ''} needs set: fencepost limits set …`);
    const where = readEndpoints(input, io);
    input.finish('limits');
    const json = input.has('json');
    return await withCluster(io, where, (cluster) =>
      operand === 'set' ? set(cluster, change, io, json) : show(cluster, io, json),
    );
  },
};

async function set(cluster: Cluster, change: LimitsChange, io: Io, json: boolean): Promise<number> {
  const { answer } = await cluster.call({ type: 'changeLimits', change });
  const { before, after } = answer;
  const was = texts(before);
  const rows = Object.entries(texts(after)).map(([name, now]): readonly [string, Cell] => {
    const old = was[name] ?? '';
    return [name, old === now ? now : { text: `${now} (was ${old})`, tone: 'good' }];
  });
  print(io, json, { before, after }, rows);
  return EXIT.ok;
}

async function show(cluster: Cluster, io: Io, json: boolean): Promise<number> {
  const nodes = await Promise.all(cluster.endpoints.map((endpoint) => ask(cluster, endpoint)));
  let newest: { readonly limits: SharedLimits; readonly at: number } | undefined;
  for (const node of nodes) {
    if (!('answered' in node)) continue;
    const { limits, appliedRevision: at } = node.answered.answer;
    if (limits !== undefined && (newest === undefined || at > newest.at)) newest = { limits, at };
  }
  if (newest === undefined) {
    for (const node of nodes) {
      const why = 'error' in node ? node.error : 'belongs to no cluster yet, or is older than this command';
      io.err(toned(`${node.endpoint}: ${why}`, 'bad', io.colour));
    }
    return EXIT.failed;
  }
  print(io, json, newest.limits, Object.entries(texts(newest.limits)));
  return EXIT.ok;
}

/** As the configuration writes them. */
function texts(limits: SharedLimits): Readonly<Record<string, string>> {
  const quotas = limits.prefixQuotas.map(({ prefix, leases, waiters }) => `${prefix}=${leases}/${waiters}`);
  return {
    ...Object.fromEntries(LIMIT_NAMES.map((name) => [name, String(limits[name])] as const)),
    prefixQuotas: quotas.length === 0 ? 'none' : quotas.join(','),
  };
}

function readChange(input: Input): LimitsChange {
  const change: { -readonly [K in keyof LimitsChange]: LimitsChange[K] } = {};
  for (const name of LIMIT_NAMES) {
    const { least, most } = LIMIT_RANGES[name];
    const value = input.integer(flagName(name).slice(2), least, most);
    if (value !== undefined) change[name] = value;
  }
  const quotas = readQuotas(input);
  if (quotas !== undefined) change.prefixQuotas = quotas;
  return change;
}

function readQuotas(input: Input): readonly PrefixQuota[] | undefined {
  const flag = flagName('prefixQuotas');
  const text = input.text(flag.slice(2));
  if (text === undefined) return undefined;
  if (text === 'none') return [];
  const read = readText('quotas', text) as readonly (PrefixQuota | string)[];
  const quotas = read.filter((each) => typeof each !== 'string');
  for (const part of read) {
    if (typeof part === 'string')
      input.fault(`${flag} must be PREFIX=LEASES/WAITERS,… or none; ${JSON.stringify(part)} is not one`);
  }
  for (const fault of quotaFaults(flag, quotas)) input.fault(fault);
  return quotas;
}
