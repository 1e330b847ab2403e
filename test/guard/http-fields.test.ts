import { describe, expect, it } from 'vitest';
import { fencingHeaders } from '../../src/guard/http.js';
import { fieldString, fieldsOf, stringsOf } from '../../src/guard/http-fields.js';

const LEASE = { domain: 'orders/eu', token: 9_007_199_254_740_993n, cluster: 'prod', incarnation: 'a1' };

describe('the header fields of a lease', () => {
  it('are structured-field strings, and hold all bits of the token', () => {
    expect(fencingHeaders(LEASE)).toEqual({
      'Fencing-Domain': '"orders/eu"',
      'Fencing-Token': '"9007199254740993"',
      'Fencing-Cluster': '"prod"',
      'Fencing-Incarnation': '"a1"',
    });
  });

  it('are lists for several leases, all in one order', () => {
    const other = { domain: 'orders/au', token: 2n ** 63n - 1n, cluster: 'a "b" \\', incarnation: '' };
    const headers = fencingHeaders([LEASE, other]);
    expect(headers).toEqual({
      'Fencing-Domain': '"orders/au", "orders/eu"',
      'Fencing-Token': '"9223372036854775807", "9007199254740993"',
      'Fencing-Cluster': '"a \\"b\\" \\\\", "prod"',
      'Fencing-Incarnation': '"", "a1"',
    });
    expect(stringsOf(headers['Fencing-Cluster'])).toEqual(['a "b" \\', 'prod']);
  });

  it('are refused, with every fault, for what is no lease or does not fit into them', () => {
    expect(() => fencingHeaders({ ...LEASE, domain: '', token: 0n })).toThrow(
      /domain must not be empty; token must be/,
    );
    expect(() => fencingHeaders({ ...LEASE, cluster: 'é', incarnation: '\n' })).toThrow(
      'not a lease for HTTP: cluster and incarnation must be printable ASCII',
    );
    expect(() => fencingHeaders([])).toThrow('an operation needs one at least');
  });
});

describe('a list of structured-field strings', () => {
  it.each([
    ['"a"', ['a']],
    ['  "a"  ', ['a']],
    ['"a","b"', ['a', 'b']],
    ['"a" \t,\t "b, c"', ['a', 'b, c']],
    ['""', ['']],
    [String.raw`"\"\\"`, ['"\\']],
  ])('is read: %s', (text, values) => {
    expect(stringsOf(text)).toEqual(values);
  });

  it.each([
    '',
    'a',
    '5',
    '"a',
    '"a",',
    ',"a"',
    '"a" "b"',
    '"a";q=1',
    String.raw`"\a"`,
    '"é"',
    '"\u0001"',
    '("a")',
    "'a'",
  ])('is refused: %s', (text) => {
    expect(stringsOf(text)).toBeUndefined();
  });

  it('takes no longer than its length asks for, whatever it is', () => {
    const long = '"'.padEnd(1_000_000, '\\');
    expect(stringsOf(long)).toBeUndefined();
    expect(stringsOf(fieldString(long.slice(0, 100)))).toEqual([long.slice(0, 100)]);
    // As many steps as characters, not their square.
    expect(stringsOf(`"a"${' '.repeat(100_000)}x`)).toBeUndefined();
    expect(stringsOf(`${' '.repeat(100_000)}"a"${' '.repeat(100_000)}`)).toEqual(['a']);
  });

  it('may come in several field lines', () => {
    const fields = fieldsOf({ 'fencing-domain': ['"a"', '"b"'], 'fencing-token': '5' });
    expect(fields.domain).toEqual({ name: 'Fencing-Domain', values: ['a', 'b'], fault: undefined });
    expect(fields.token).toMatchObject({
      values: undefined,
      fault: expect.stringContaining('double quotes') as string,
    });
    expect(fields.cluster).toEqual({ name: 'Fencing-Cluster', values: undefined, fault: undefined });
  });
});
