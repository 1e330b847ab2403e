import type { Freshness } from '../base/api.js';
import { parseAddress } from '../base/address.js';
import type { Cluster } from './cluster.js';
import type { OptionSpec } from './command.js';
import type { Input } from './input.js';
import type { Io } from './io.js';

/** Where the nodes of `npm start` and `fencepost dev` listen. */
export const DEFAULT_ENDPOINTS: readonly string[] = ['127.0.0.1:7101', '127.0.0.1:7102', '127.0.0.1:7103'];

/** Names the nodes when no flag does. */
export const ENDPOINTS_VARIABLE = 'FENCEPOST_ENDPOINTS';

const DEFAULT_TIMEOUT_MS = 10_000;
const MAX_TIMEOUT_MS = 3_600_000;

/** A result for a program instead of a person. */
export const JSON_OPTION: OptionSpec = { flag: 'json', about: 'one JSON document on standard output; tokens as text' };

/** The options of every command that talks to a cluster. */
export const CLUSTER_OPTIONS: readonly OptionSpec[] = [
  {
    flag: 'endpoints',
    value: 'HOST:PORT,…',
    about: `nodes to ask (default ${ENDPOINTS_VARIABLE}, else ${DEFAULT_ENDPOINTS.join(',')})`,
  },
  { flag: 'timeout-ms', value: 'MS', about: `give up after so long (default ${DEFAULT_TIMEOUT_MS})` },
  JSON_OPTION,
];

/** Reads `--endpoints` and `--timeout-ms`; the way to the cluster is opened by {@link withCluster}, after `finish`. */
export function readEndpoints(
  input: Input,
  io: Io,
): { readonly endpoints: readonly string[]; readonly timeoutMs: number } {
  const flag = input.text('endpoints');
  const variable = io.environment[ENDPOINTS_VARIABLE];
  const text = flag ?? variable;
  const endpoints = text === undefined ? DEFAULT_ENDPOINTS : [...new Set(text.split(',').map((part) => part.trim()))];
  const origin = flag === undefined ? ENDPOINTS_VARIABLE : '--endpoints';
  for (const endpoint of endpoints)
    if (parseAddress(endpoint) === undefined)
      input.fault(`${origin} must be HOST:PORT,… with ports from 1 to 65535; ${JSON.stringify(endpoint)} is not one`);
  return { endpoints, timeoutMs: input.integer('timeout-ms', 1, MAX_TIMEOUT_MS) ?? DEFAULT_TIMEOUT_MS };
}

/** Opens the way to the cluster for `use`, and closes it whatever happens. */
export async function withCluster<T>(
  io: Io,
  where: { readonly endpoints: readonly string[]; readonly timeoutMs: number },
  use: (cluster: Cluster) => Promise<T>,
): Promise<T> {
  const cluster = io.connect(where.endpoints, where.timeoutMs);
  try {
    return await use(cluster);
  } finally {
    cluster.close();
  }
}

/** The flag of calls that read. */
export const LOCAL_OPTION: OptionSpec = {
  flag: 'local',
  about: 'what the answering node has applied; may be old, needs no leader',
};

/** Reads {@link LOCAL_OPTION}. */
export function readFreshness(input: Input): Freshness {
  return input.has('local') ? 'local' : 'linearizable';
}
