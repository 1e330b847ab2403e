/** Each setting of a node: what it may be, what it is when nobody says, and its names in the file, environment and flags. */
import { z } from 'zod';
import { prefixFault } from '../base/domain.js';
import { isNodeId, type NodeId } from '../base/ids.js';
import {
  DEFAULT_TTL_MS,
  DISK_FLOOR_BYTES,
  ELECTION_MAX_MS,
  ELECTION_MIN_MS,
  HEARTBEAT_MS,
  MAX_LEASES_PER_PRINCIPAL,
  MAX_PREFIX_QUOTAS,
  MAX_QUEUE,
  MAX_QUOTA,
  MAX_TTL_MS,
  MAX_WAITERS_PER_PRINCIPAL,
  TICK_MS,
} from '../base/limits.js';
import { type Revision, ZERO_REVISION } from '../base/revision.js';
import { LIMIT_RANGES, PREFIX_COUNT_RULE, PREFIX_RULE } from '../base/shared-limits.js';
import { parseAddress } from '../base/address.js';
import type { NodeConfig } from './config.js';

/** How a text from the environment or a flag becomes a value. */
export type Kind = 'text' | 'integer' | 'boolean' | 'members' | 'quotas';

/** One setting. */
export interface Field<T> {
  readonly kind: Kind;
  /** What it may be. */
  readonly schema: z.ZodType<T>;
  /** What it is when nobody says; undefined when somebody must. */
  readonly fallback: T | undefined;
  /** One line for `--help`. */
  readonly about: string;
}

const DAY_MS = 86_400_000;
const CLUSTER = /^[A-Za-z0-9._-]{1,63}$/;
const NAME = '1–63 characters of [A-Za-z0-9._-]';

const integer = (low: number, high: number) => {
  const error = `must be a whole number from ${low} to ${high}`;
  return z.int({ error }).min(low, { error }).max(high, { error });
};
const boolean = z.boolean({ error: 'must be true or false' });
const nodeId = z.custom<NodeId>((value) => typeof value === 'string' && isNodeId(value), {
  error: `must be ${NAME}`,
});
const address = z.custom<string>((value) => typeof value === 'string' && parseAddress(value) !== undefined, {
  error: 'must be host:port with a port from 1 to 65535; an IPv6 host stands in brackets',
});
const revision = z
  .custom<string>(
    (value) => typeof value === 'string' && /^[1-9]\d{0,15}$/.test(value) && Number.isSafeInteger(Number(value)),
    {
      error: 'must be a revision as text, in quotes: digits, at most 9007199254740991',
    },
  )
  .transform((text): Revision => Number(text) as Revision);
const members = z
  .array(
    z.strictObject(
      { nodeId, peerAddress: address },
      { error: 'must be {"nodeId": …, "peerAddress": "host:port"} and nothing else' },
    ),
    {
      error: 'must be a list of {"nodeId": …, "peerAddress": "host:port"}',
    },
  )
  .min(1, { error: 'must name at least one member, this node itself' })
  .max(7, { error: 'must name at most 7 members: more make every grant slower and nothing safer' });
const prefix = z.custom<string>((value) => typeof value === 'string' && prefixFault(value) === undefined, {
  error: PREFIX_RULE,
});
const prefixQuotas = z
  .array(
    z.strictObject(
      { prefix, leases: integer(0, MAX_QUOTA), waiters: integer(0, MAX_QUOTA) },
      { error: 'must be {"prefix": …, "leases": …, "waiters": …} and nothing else' },
    ),
    { error: 'must be a list of {"prefix": …, "leases": …, "waiters": …}' },
  )
  .max(MAX_PREFIX_QUOTAS, { error: PREFIX_COUNT_RULE });
const limit = (name: keyof typeof LIMIT_RANGES) => integer(LIMIT_RANGES[name].least, LIMIT_RANGES[name].most);
const nonEmpty = z.string({ error: 'must be a text' }).min(1, { error: 'must not be empty' });

/** All settings; `NodeConfig` documents what each does. */
export const FIELDS: { readonly [K in keyof NodeConfig]: Field<NodeConfig[K]> } = {
  cluster: {
    kind: 'text',
    schema: z.string({ error: `must be ${NAME}` }).regex(CLUSTER, { error: `must be ${NAME}` }),
    fallback: undefined,
    about: 'name of the cluster; guards keep it beside their fences',
  },
  nodeId: { kind: 'text', schema: nodeId, fallback: undefined, about: 'name of this node, one of the members' },
  dataDir: { kind: 'text', schema: nonEmpty, fallback: undefined, about: 'directory of the log and the state' },
  clientAddress: {
    kind: 'text',
    schema: address,
    fallback: '127.0.0.1:7101',
    about: 'where clients are served',
  },
  peerAddress: {
    kind: 'text',
    schema: address,
    fallback: '127.0.0.1:7201',
    about: 'where this node listens for the other members',
  },
  members: {
    kind: 'members',
    schema: members,
    fallback: undefined,
    about: 'all initial members, as ID=HOST:PORT,… with the address at which the others find it',
  },
  form: {
    kind: 'boolean',
    schema: boolean,
    fallback: false,
    about: 'an empty data directory may form a new cluster with the other members',
  },
  floor: {
    kind: 'text',
    schema: revision,
    fallback: ZERO_REVISION,
    about: 'when forming: the first token is greater than this revision',
  },
  holdMs: {
    kind: 'integer',
    schema: integer(0, DAY_MS),
    fallback: 0,
    about: 'when forming: grant nothing for so long, because holders of an earlier cluster may live',
  },
  insecure: {
    kind: 'boolean',
    schema: boolean,
    fallback: false,
    about: 'listen without TLS where other machines can connect',
  },
  diskFloorBytes: {
    kind: 'integer',
    schema: integer(0, Number.MAX_SAFE_INTEGER),
    fallback: DISK_FLOOR_BYTES,
    about: 'with less than this free, new leases are refused',
  },
  tickMs: { kind: 'integer', schema: integer(1, 1_000), fallback: TICK_MS, about: 'resolution of all time-outs' },
  heartbeatMs: {
    kind: 'integer',
    schema: integer(1, 60_000),
    fallback: HEARTBEAT_MS,
    about: "time between a leader's heartbeats",
  },
  electionMinMs: {
    kind: 'integer',
    schema: integer(1, 60_000),
    fallback: ELECTION_MIN_MS,
    about: 'least election time-out',
  },
  electionMaxMs: {
    kind: 'integer',
    schema: integer(1, 60_000),
    fallback: ELECTION_MAX_MS,
    about: 'greatest election time-out',
  },
  defaultTtlMs: {
    kind: 'integer',
    schema: integer(1, MAX_TTL_MS),
    fallback: DEFAULT_TTL_MS,
    about: 'TTL of a lease whose client names none',
  },
  queueLimit: {
    kind: 'integer',
    schema: limit('queueLimit'),
    fallback: MAX_QUEUE,
    about: 'when forming: requests that may wait for one domain',
  },
  leasesPerPrincipal: {
    kind: 'integer',
    schema: limit('leasesPerPrincipal'),
    fallback: MAX_LEASES_PER_PRINCIPAL,
    about: 'when forming: leases that one principal (an address, or a certificate) may hold',
  },
  waitersPerPrincipal: {
    kind: 'integer',
    schema: limit('waitersPerPrincipal'),
    fallback: MAX_WAITERS_PER_PRINCIPAL,
    about: 'when forming: requests of one principal that may wait',
  },
  prefixQuotas: {
    kind: 'quotas',
    schema: prefixQuotas,
    fallback: [],
    about: 'when forming: what all together may have below a prefix, as PREFIX=LEASES/WAITERS,…',
  },
  logLevel: {
    kind: 'text',
    schema: z.enum(['info', 'warn', 'error'], { error: 'must be info, warn or error' }),
    fallback: 'info',
    about: 'least level that is logged; audit lines always are',
  },
  auditGrants: {
    kind: 'boolean',
    schema: boolean,
    fallback: false,
    about: 'write an audit line for each grant, too; for losses, forced releases and limits there always is one',
  },
  auditReleases: {
    kind: 'boolean',
    schema: boolean,
    fallback: false,
    about: 'write an audit line for each release and withdrawal, too',
  },
};

/** The names of {@link FIELDS}, in the order of the documentation. */
export const FIELD_NAMES = Object.keys(FIELDS) as readonly (keyof NodeConfig)[];

/** `dataDir` → `FENCEPOST_DATA_DIR`. */
export function environmentName(field: keyof NodeConfig): string {
  return `FENCEPOST_${field.replace(/[A-Z]/g, (letter) => `_${letter}`).toUpperCase()}`;
}

/** `dataDir` → `--data-dir`. */
export function flagName(field: keyof NodeConfig): string {
  return `--${field.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)}`;
}

/** What a text of the environment or of a flag stands for; what cannot be read is passed on, for the schema to refuse. */
export function readText(kind: Kind, text: string): unknown {
  switch (kind) {
    case 'text':
      return text;
    case 'integer':
      return /^-?\d+$/.test(text) ? Number(text) : text;
    case 'boolean':
      return text === 'true' || text === '1' ? true : text === 'false' || text === '0' ? false : text;
    case 'members':
      return text.split(',').map((part) => {
        const at = part.indexOf('=');
        return at < 0 ? part.trim() : { nodeId: part.slice(0, at).trim(), peerAddress: part.slice(at + 1).trim() };
      });
    case 'quotas':
      return text.split(',').map((part) => {
        // A prefix may have = and / itself: the numbers stand behind the last ones.
        const [, prefixText, leases, waiters] = /^(.*)=(\d+)\/(\d+)$/.exec(part.trim()) ?? [];
        return prefixText === undefined
          ? part
          : { prefix: prefixText, leases: Number(leases), waiters: Number(waiters) };
      });
  }
}
