/** Leases as metadata of a gRPC call: plain text, one value of each key for each lease. */
import { Metadata } from '@grpc/grpc-js';
import { leasesOf } from './fence.js';
import { FACTS } from './presented.js';
import type { Fact, Field } from './presented.js';
import type { FencedLease } from './types.js';

/** Metadata of the service's answer to what a guard has applied, in its trailers. */
export const OUTCOME_KEY = 'fencing-outcome';
/** UTF-8: the fence may have it from a client of another kind, and what was applied must not fail for its characters. */
export const EARLIER_KEY = 'fencing-earlier-incarnation-bin';

/** What a value may hold: printable ASCII; the comma separates, and blanks around a value are lost on the way. */
const VALUE = /^(?:[\x21-\x2b\x2d-\x7e](?:[\x20-\x2b\x2d-\x7e]*[\x21-\x2b\x2d-\x7e])?)?$/;

/**
 * Metadata of a call under these leases: `fencing-domain`, `fencing-token`, `fencing-cluster` and `fencing-incarnation`. Throws a
 * TypeError, with every fault, when one is no lease, when there is none, when two are of one domain, and when a cluster or an
 * incarnation is not printable ASCII without commas and without blanks at its ends.
 */
export function fencingMetadata(leases: FencedLease | readonly FencedLease[]): Metadata {
  const metadata = new Metadata();
  setFencing(metadata, leases);
  return metadata;
}

/** Sets them in metadata that has more. */
export function setFencing(metadata: Metadata, leases: FencedLease | readonly FencedLease[]): void {
  const given = leasesOf(leases);
  const faults = FACTS.filter((fact) => given.some((lease) => !VALUE.test(`${lease[fact]}`)));
  if (faults.length > 0) {
    throw new TypeError(`not a lease for gRPC: ${faults.join(' and ')} must be printable ASCII without commas`);
  }
  for (const fact of FACTS) metadata.set(keyOf(fact), given.map((lease) => `${lease[fact]}`).join(','));
}

/** The part of the library's `Metadata` that is read here. */
export interface IncomingMetadata {
  /** The values of a key, which may each be several, separated by commas. */
  get(key: string): readonly (string | Uint8Array)[];
}

/** The keys of a call, each with its values. */
export function fieldsOf(metadata: IncomingMetadata): Record<Fact, Field> {
  const field = (fact: Fact): Field => {
    const values = metadata.get(keyOf(fact)).flatMap((value) => String(value).split(','));
    const trimmed = values.map((value) => value.trim());
    return { name: keyOf(fact), values: values.length === 0 ? undefined : trimmed, fault: undefined };
  };
  return {
    domain: field('domain'),
    token: field('token'),
    cluster: field('cluster'),
    incarnation: field('incarnation'),
  };
}

function keyOf(fact: Fact): string {
  return `fencing-${fact}`;
}
