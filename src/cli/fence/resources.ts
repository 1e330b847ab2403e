import type { Input } from '../input.js';
import { mysql } from './mysql.js';
import { postgres } from './postgres.js';
import { redis } from './redis.js';
import { sqlite } from './sqlite.js';
import type { FenceStore, ResourceKind, Surroundings } from './store.js';

/** A kind more is a file more, and a word here. */
const KINDS: readonly ResourceKind[] = [postgres, sqlite, redis, mysql];

/** How the addresses look, for `--help` and for faults. */
export const ADDRESS_FORMS = KINDS.map(({ form }) => form).join(', ');

/** A resource that was named and not opened yet. */
export interface Resource {
  readonly kind: ResourceKind;
  readonly address: string;
}

/** Reads `--at`. Never repeats the address in a fault: it may hold a password. */
export function readResource(input: Input): Resource | undefined {
  const address = input.text('at');
  if (address === undefined) {
    if (!input.has('at')) input.fault(`--at is missing: where the fences are, as ${ADDRESS_FORMS}`);
    return undefined;
  }
  const scheme = /^([a-z][a-z0-9+.-]*):/.exec(address)?.[1];
  const kind = KINDS.find(({ schemes }) => schemes.some((each) => each === scheme));
  if (kind !== undefined) {
    const fault = kind.addressFault(address);
    if (fault !== undefined) input.fault(`--at ${fault}`);
    return { kind, address };
  }
  const what = scheme === undefined ? 'an address without a scheme' : `the scheme ${scheme}`;
  input.fault(`--at must be one of ${ADDRESS_FORMS}, not ${what}`);
  return undefined;
}

/** Opens the resource for `use`, and closes it whatever happens. */
export async function withResource<T>(
  { kind, address }: Resource,
  surroundings: Surroundings,
  use: (store: FenceStore) => Promise<T>,
): Promise<T> {
  const store = await kind.open(address, surroundings);
  try {
    return await use(store);
  } finally {
    await store.close();
  }
}
