/** Leases as header fields: lists of structured-field strings (RFC 9651), one member for each lease. */
import { leasesOf } from './fence.js';
import { FACTS } from './presented.js';
import type { Fact, Field } from './presented.js';
import type { FencedLease } from './types.js';

/** The request fields; names of fields know no case. */
const NAMES = {
  domain: 'Fencing-Domain',
  token: 'Fencing-Token',
  cluster: 'Fencing-Cluster',
  incarnation: 'Fencing-Incarnation',
} as const satisfies Record<Fact, keyof FencingHeaders>;

/** The header fields of a fenced request. */
export type FencingHeaders = Record<
  'Fencing-Domain' | 'Fencing-Token' | 'Fencing-Cluster' | 'Fencing-Incarnation',
  string
>;

/** Header fields as Node's `http` has them: names in lower case. */
export type IncomingFields = Readonly<Record<string, string | readonly string[] | undefined>>;

/** What a structured-field string may hold, and how it is written. */
const PRINTABLE = /^[\x20-\x7e]*$/;
const STRING = /"((?:[\x20\x21\x23-\x5b\x5d-\x7e]|\\["\\])*)"/y;
const COMMA = /[ \t]*,[ \t]*/y;
/** Around a list. */
const SPACES = / */y;

/**
 * The header fields of a request under these leases, for any HTTP client. Throws a TypeError, with every fault, when one is no
 * lease, when there is none, when two are of one domain, and when a cluster or an incarnation has other
 * characters than printable ASCII, which is all that such a field holds.
 */
export function fencingHeaders(leases: FencedLease | readonly FencedLease[]): FencingHeaders {
  const given = leasesOf(leases);
  const write = (fact: Fact): string => given.map((lease) => `${lease[fact]}`).join('');
  const faults = FACTS.filter((fact) => !PRINTABLE.test(write(fact)));
  if (faults.length > 0) {
    throw new TypeError(`not a lease for HTTP: ${faults.join(' and ')} must be printable ASCII`);
  }
  const list = (fact: Fact): string => given.map((lease) => fieldString(`${lease[fact]}`)).join(', ');
  return {
    'Fencing-Domain': list('domain'),
    'Fencing-Token': list('token'),
    'Fencing-Cluster': list('cluster'),
    'Fencing-Incarnation': list('incarnation'),
  };
}

/** The fields of a request, each with its values or with what is wrong with it. */
export function fieldsOf(headers: IncomingFields): Record<Fact, Field> {
  const field = (fact: Fact): Field => {
    const name = NAMES[fact];
    const raw = headers[name.toLowerCase()];
    if (raw === undefined) return { name, values: undefined, fault: undefined };
    // Field lines of one name are one list, in their order (RFC 9110, 5.3).
    const text = typeof raw === 'string' ? raw : raw.join(', ');
    const values = stringsOf(text);
    const fault = 'must be strings in double quotes, separated by commas, without parameters (RFC 9651)';
    return values === undefined ? { name, values, fault } : { name, values, fault: undefined };
  };
  return {
    domain: field('domain'),
    token: field('token'),
    cluster: field('cluster'),
    incarnation: field('incarnation'),
  };
}

/** A text as a structured-field string; a character that none may hold becomes a question mark. */
export function fieldString(text: string): string {
  return `"${text.replace(/[^\x20-\x7e]/g, '?').replace(/["\\]/g, '\\$&')}"`;
}

/** The members of a list of strings, one at least; undefined when it is none. Linear in the length of the text. */
export function stringsOf(text: string): readonly string[] | undefined {
  const values: string[] = [];
  let at = matchAt(SPACES, text, 0)?.[0].length ?? 0;
  for (;;) {
    const member = matchAt(STRING, text, at);
    if (member?.[1] === undefined) return undefined;
    values.push(member[1].replace(/\\(["\\])/g, '$1'));
    at += member[0].length;
    const comma = matchAt(COMMA, text, at);
    if (comma === null) return at + (matchAt(SPACES, text, at)?.[0].length ?? 0) === text.length ? values : undefined;
    at += comma[0].length;
  }
}

function matchAt(pattern: RegExp, text: string, at: number): RegExpExecArray | null {
  pattern.lastIndex = at;
  return pattern.exec(text);
}
