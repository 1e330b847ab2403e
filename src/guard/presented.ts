/** The leases that a request over a network presents: whether they can be read, and whether they are those that it needs. */
import { leasedDomainFault } from '../base/domain.js';
import { admitAll, issuerOf, isToken, leasesOf } from './fence.js';
import type { Fence } from './fence.js';
import type { FencedLease, Rejected, Stale } from './types.js';

/** The facts of a lease, each in a field of its own. */
export const FACTS = ['domain', 'token', 'cluster', 'incarnation'] as const satisfies readonly (keyof FencedLease)[];

/** The name of a fact. */
export type Fact = (typeof FACTS)[number];

/** A field of a request as it came: the value for each lease, or what is wrong with the whole. */
export interface Field {
  /** As the client wrote it, for messages. */
  readonly name: string;
  /** One for each lease. Undefined when the field is absent. */
  readonly values: readonly string[] | undefined;
  /** Undefined when the values could be told apart. */
  readonly fault: string | undefined;
}

/** Where fences can be looked up; each guard of this package is one. */
export interface FenceReader {
  /** The fence of a domain, undefined when there is none; facts that are absent are not compared. */
  fence(domain: string): Promise<Partial<Fence> | undefined> | Partial<Fence> | undefined;
}

/** The request needs a lease of each of these domains, and presents none. */
export interface LeaseRequired {
  /** Tells the refusals apart. */
  readonly status: 'required';
  /** Of which it presents none. */
  readonly domains: readonly string[];
}

/** What the request presents cannot be read. */
export interface LeaseMalformed {
  /** Tells the refusals apart. */
  readonly status: 'malformed';
  /** All of them. */
  readonly faults: readonly string[];
}

/** How a request is refused before any guard has seen it. Nothing was changed. */
export type RequestRefusal = LeaseRequired | LeaseMalformed | Stale | Rejected;

/** The verdict on a request; `leases` are those that it presents, as far as they could be read. */
export interface Verdict {
  /** In the order of their domains. */
  readonly leases: readonly FencedLease[];
  /** Undefined when the request may go on to its guard. */
  readonly refusal: RequestRefusal | undefined;
}

const FAULT_OF: Record<Fact, (text: string) => string | undefined> = {
  domain: leasedDomainFault,
  token: (text) => (isToken(text) ? undefined : 'must be a decimal from 1 to 2^63 - 1, without leading zeros'),
  cluster: (text) => (text === '' ? 'must be the name of the cluster' : undefined),
  incarnation: () => undefined,
};

/**
 * Judges a request that needs a lease of each domain of `needed`, one at least. With `reader` it is refused at once when the
 * fence stands in its way already; a request that passes has to be judged again by the guard itself, which alone
 * does so in one step with the change.
 */
export async function judge(
  fields: Readonly<Record<Fact, Field>>,
  needed: readonly string[],
  reader: FenceReader | undefined,
): Promise<Verdict> {
  const refused = (refusal: RequestRefusal, leases: readonly FencedLease[] = []): Verdict => ({ leases, refusal });
  if (FACTS.every((fact) => fields[fact].values === undefined && fields[fact].fault === undefined)) {
    return refused({ status: 'required', domains: needed });
  }
  const faults = faultsOf(fields);
  if (faults.length > 0) return refused({ status: 'malformed', faults });

  const leases = leasesFrom(fields);
  const presented = leases.map(({ domain }) => domain);
  const absent = needed.filter((domain) => !presented.includes(domain));
  if (absent.length > 0) return refused({ status: 'required', domains: absent }, leases);
  const others = presented.filter((domain) => !needed.includes(domain));
  if (others.length > 0) {
    const fault = `${fields.domain.name} names ${others.join(', ')}: this request takes ${needed.join(', ')} and no other`;
    return refused({ status: 'malformed', faults: [fault] }, leases);
  }
  return { leases, refusal: await refusedAlready(leases, reader) };
}

function faultsOf(fields: Readonly<Record<Fact, Field>>): string[] {
  const faults = FACTS.flatMap((fact) => {
    const { name, values, fault } = fields[fact];
    if (fault !== undefined) return [`${name} ${fault}`];
    if (values === undefined) return [`${name} is missing`];
    return values.flatMap((value) => {
      const wrong = FAULT_OF[fact](value);
      return wrong === undefined ? [] : [`${name} ${JSON.stringify(value)} ${wrong}`];
    });
  });
  const given = FACTS.map((fact) => fields[fact]).filter(({ values }) => values !== undefined);
  if (new Set(given.map(({ values }) => values?.length)).size > 1) {
    const counts = given.map(({ name, values }) => `${name} ${values?.length ?? 0}`).join(', ');
    faults.push(`each lease has one value in each field, and these differ in number: ${counts}`);
  }
  const domains = fields.domain.values ?? [];
  const twice = domains.filter((domain, at) => domains.indexOf(domain) < at);
  if (twice.length > 0) faults.push(`${fields.domain.name} names ${twice.join(', ')} more than once`);
  return faults;
}

/** Of fields without faults. */
function leasesFrom(fields: Readonly<Record<Fact, Field>>): readonly FencedLease[] {
  const value = (fact: Fact, at: number): string => fields[fact].values?.[at] ?? '';
  return leasesOf(
    (fields.domain.values ?? []).map((domain, at) => ({
      domain,
      token: BigInt(value('token', at)),
      cluster: value('cluster', at),
      incarnation: value('incarnation', at),
    })),
  );
}

async function refusedAlready(
  leases: readonly FencedLease[],
  reader: FenceReader | undefined,
): Promise<Stale | Rejected | undefined> {
  if (reader === undefined) return undefined;
  const fences = new Map<string, Fence>();
  for (const { domain, cluster, incarnation } of leases) {
    const { token, ...facts } = (await reader.fence(domain)) ?? {};
    if (token !== undefined) fences.set(domain, { issuer: issuerOf(cluster), incarnation, ...facts, token });
  }
  const verdict = admitAll(leases, (domain) => fences.get(domain));
  return verdict.status === 'admitted' ? undefined : verdict;
}
