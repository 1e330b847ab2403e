/** What the S3 guard keeps of a domain in one object: its fence, and where its data lie. */
import { leasedDomainFault } from '../base/domain.js';
import { isToken } from './fence.js';
import type { Fence } from './fence.js';

/** The one object of a domain that is ever replaced. */
export interface Manifest {
  readonly fence: Fence;
  /** Random ids of the latest writes, the latest first, {@link KEPT_WRITES} at most: who lost an answer finds its own. */
  readonly writes: readonly string[];
  /** The key of each object, by the name that the user gave it. */
  readonly objects: ReadonlyMap<string, string>;
}

/** How many writes may follow one whose answer was lost before nobody can tell any more what became of it. */
export const KEPT_WRITES = 16;

const FORMAT = 1;

/** The bytes of a manifest. No two are alike, because of their write ids, so no ETag ever comes back. */
export function encodeManifest(domain: string, { fence, writes, objects }: Manifest): Uint8Array {
  const { token, issuer, incarnation } = fence;
  const text = { format: FORMAT, domain, token: token.toString(), issuer, incarnation, writes, objects: [...objects] };
  return new TextEncoder().encode(`${JSON.stringify(text, null, 1)}\n`);
}

/** Reads a manifest back. Throws, with every fault, when it is none, or that of another domain: nothing is guessed. */
export function decodeManifest(domain: string, key: string, bytes: Uint8Array): Manifest {
  const refuse = (faults: readonly string[]): Error =>
    new Error(
      `the object ${key} is no manifest of ${domain}: ${faults.join('; ')}. Nothing was changed. Bring back its last good ` +
        'version, have every holder acquire anew, and open, before anything is written',
    );
  let read: unknown;
  try {
    read = JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(bytes));
  } catch {
    throw refuse(['it is no JSON']);
  }
  if (typeof read !== 'object' || read === null) throw refuse(['it is no JSON object']);
  const fields = read as Readonly<Record<string, unknown>>;
  const { format, token, issuer, incarnation, writes, objects } = fields;
  if (format !== FORMAT) throw refuse([`its format is ${JSON.stringify(format)}, and this guard knows ${FORMAT} only`]);

  const faults: string[] = [];
  if (fields['domain'] !== domain) faults.push(`its domain is ${JSON.stringify(fields['domain'])}`);
  if (!isToken(token)) faults.push('its token is no integer from 1 to 2^63 - 1');
  if (!isText(issuer) || issuer === '') faults.push('it has no issuer');
  if (!isText(incarnation)) faults.push('it has no incarnation');
  if (!isList(writes, isText) || writes.length === 0) faults.push('it has no list of writes');
  if (!isList(objects, isEntry)) faults.push('it has no list of objects');
  else if (new Map(objects).size < objects.length) faults.push('it names an object twice');
  if (faults.length > 0) throw refuse(faults);
  return {
    fence: { token: BigInt(token as string), issuer: issuer as string, incarnation: incarnation as string },
    writes: writes as readonly string[],
    objects: new Map(objects as readonly [string, string][]),
  };
}

/**
 * The folder of a domain. Slashes become exclamation marks, which no domain has: a segment `..` between slashes would be
 * another folder for a proxy or a client on the way. Throws a TypeError for what is no domain.
 */
export function folderOf(prefix: string, domain: string): string {
  const fault = leasedDomainFault(domain);
  if (fault !== undefined) throw new TypeError(`domain ${fault}`);
  return `${prefix}${domain.replaceAll('/', '!')}.fence/`;
}

function isText(value: unknown): value is string {
  return typeof value === 'string';
}

function isList<T>(value: unknown, isOne: (each: unknown) => each is T): value is readonly T[] {
  return Array.isArray(value) && value.every(isOne);
}

function isEntry(value: unknown): value is readonly [string, string] {
  return isList(value, isText) && value.length === 2;
}
