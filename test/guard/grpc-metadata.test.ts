import { Metadata } from '@grpc/grpc-js';
import { describe, expect, it } from 'vitest';
import { fencingMetadata } from '../../src/guard/grpc.js';
import { fieldsOf } from '../../src/guard/grpc-metadata.js';

const LEASE = { domain: 'orders/eu', token: 9_007_199_254_740_993n, cluster: 'prod', incarnation: 'a1' };

describe('the metadata of a lease', () => {
  it('are plain text, and hold all bits of the token', () => {
    expect(fencingMetadata(LEASE).getMap()).toEqual({
      'fencing-domain': 'orders/eu',
      'fencing-token': '9007199254740993',
      'fencing-cluster': 'prod',
      'fencing-incarnation': 'a1',
    });
  });

  it('are lists for several leases, all in one order', () => {
    const other = { domain: 'orders/au', token: 2n ** 63n - 1n, cluster: 'a "b" \\', incarnation: '' };
    const metadata = fencingMetadata([LEASE, other]);
    expect(metadata.getMap()).toEqual({
      'fencing-domain': 'orders/au,orders/eu',
      'fencing-token': '9223372036854775807,9007199254740993',
      'fencing-cluster': 'a "b" \\,prod',
      'fencing-incarnation': ',a1',
    });
    expect(fieldsOf(metadata).incarnation).toEqual({
      name: 'fencing-incarnation',
      values: ['', 'a1'],
      fault: undefined,
    });
  });

  it('may come as several values of one key, and with blanks behind the commas', () => {
    const metadata = new Metadata();
    for (const value of ['a', 'b, c']) metadata.add('fencing-domain', value);
    expect(fieldsOf(metadata).domain.values).toEqual(['a', 'b', 'c']);
    expect(fieldsOf(metadata).token).toEqual({ name: 'fencing-token', values: undefined, fault: undefined });
  });

  it('are refused, with every fault, for what is no lease', () => {
    expect(() => fencingMetadata({ ...LEASE, domain: '', token: 0n })).toThrow(
      /domain must not be empty; token must be/,
    );
    expect(() => fencingMetadata([])).toThrow('an operation needs one at least');
  });

  it.each(['é', '\n', 'a,b', ' a', 'a ', ' '])('are refused for %j, which would not arrive as it is', (text) => {
    expect(() => fencingMetadata({ ...LEASE, cluster: text, incarnation: text })).toThrow(
      'not a lease for gRPC: cluster and incarnation must be printable ASCII without commas',
    );
  });
});
