/** What `acquire` and `run` ask for in the same words. */
import { hostname, userInfo } from 'node:os';
import type { Metadata } from '../base/api.js';
import { MAX_SLOTS } from '../base/domain.js';
import type { Domain } from '../base/ids.js';
import { MAX_COOL_DOWN_MS, MAX_HOLDER_BYTES, MAX_TTL_MS, MAX_WAIT_MS } from '../base/limits.js';
import type { OptionSpec } from './command.js';
import type { Input } from './input.js';

/** The options behind `--ttl-ms`, whose default the commands differ in. */
export const ACQUIRE_OPTIONS: readonly OptionSpec[] = [
  { flag: 'wait-ms', value: 'MS', about: 'how long to wait in the queue while another holds the domain (default 0)' },
  {
    flag: 'slots',
    value: 'N',
    about: 'any one of N slots of this name; the first acquire fixes N (default 1: exclusive)',
  },
  {
    flag: 'cool-down-ms',
    value: 'MS',
    about: 'how long the domain stays closed if the lease expires, for resources that compare no tokens (default 0)',
  },
  { flag: 'holder', value: 'NAME', about: 'shown to operators (default user@host)' },
  { flag: 'meta', value: 'KEY=VALUE', about: 'shown to operators; may be repeated', many: true },
];

/** What was asked for; `ttlMs` is undefined when nothing was said. */
export interface Asked {
  readonly domain: Domain;
  readonly holder: string;
  readonly metadata: Metadata;
  readonly ttlMs: number | undefined;
  readonly waitMs: number;
  readonly slots: number;
  readonly coolDownMs: number;
}

/** Reads the domain, `--ttl-ms` and {@link ACQUIRE_OPTIONS}. */
export function readAsked(input: Input): Asked {
  const domain = input.domain();
  const holder = input.text('holder') ?? `${userInfo().username}@${hostname()}`;
  const bytes = Buffer.byteLength(holder);
  if (bytes === 0 || bytes > MAX_HOLDER_BYTES)
    input.fault(`--holder must have 1 to ${MAX_HOLDER_BYTES} bytes; this one has ${bytes}`);
  const metadata = new Map<string, string>();
  for (const text of input.texts('meta')) {
    const at = text.indexOf('=');
    if (at < 1) input.fault(`--meta must be KEY=VALUE, not ${JSON.stringify(text)}`);
    else if (metadata.has(text.slice(0, at))) input.fault(`--meta names ${text.slice(0, at)} twice`);
    else metadata.set(text.slice(0, at), text.slice(at + 1));
  }
  return {
    domain,
    holder,
    metadata: [...metadata].sort(([a], [b]) => (a < b ? -1 : 1)),
    ttlMs: input.integer('ttl-ms', 1, MAX_TTL_MS),
    waitMs: input.integer('wait-ms', 0, MAX_WAIT_MS) ?? 0,
    slots: input.integer('slots', 1, MAX_SLOTS) ?? 1,
    coolDownMs: input.integer('cool-down-ms', 0, MAX_COOL_DOWN_MS) ?? 0,
  };
}
