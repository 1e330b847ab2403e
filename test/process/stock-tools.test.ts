/** A real node and a stock tool that has nothing of ours: it learns the service from the node itself. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { clientOf, endAll, watchHealth } from '../server/kit.js';
import { curl, curlCall } from '../server/stock-client.js';
import { ProcessCluster, until } from './cluster.js';
import type { ProcessNode } from './cluster.js';

const REQUEST_ID = '123e4567-e89b-42d3-a456-426614174000';

describe('buf curl and a node', () => {
  let cluster: ProcessCluster;
  let node: ProcessNode;
  beforeAll(async () => {
    cluster = await ProcessCluster.started({ nodes: 1 });
    node = await cluster.untilLeader();
  });
  afterAll(async () => {
    await endAll();
    await cluster[Symbol.asyncDispose]();
  });

  function call(method: string, request: object): Promise<unknown> {
    return curlCall(node.clientAddress, `fencepost.v1.${method}`, request);
  }

  it('list what there is', async () => {
    const { code, stdout } = await curl(node.clientAddress, '', '--list-methods');
    expect(code).toBe(0);
    expect(stdout.split('\n')).toEqual(
      expect.arrayContaining(['fencepost.v1.LeaseService/Acquire', 'fencepost.v1.ClusterService/GetStatus']),
    );
  });

  it('take a lease through its life', async () => {
    const acquire = {
      domain: 'stock/tool',
      requestId: REQUEST_ID,
      holder: 'a shell',
      ttlMs: 60_000,
      metadata: { zone: 'eu' },
    };
    const granted = (await call('LeaseService/Acquire', acquire)) as {
      readonly header: { readonly revision: string; readonly nodeId: string; readonly leaderId: string };
      readonly granted: { readonly token: string };
    };
    const { token } = granted.granted;
    expect(token).toMatch(/^\d{16}$/);
    expect(granted).toMatchObject({
      header: { cluster: 'test', revision: token, nodeId: 'n1', leaderId: 'n1' },
      requestId: REQUEST_ID,
      granted: { domain: 'stock/tool', token, holder: 'a shell', metadata: { zone: 'eu' }, ttlMs: 60_000 },
    });

    // The same request again is the same lease; another one is told who has it.
    expect(await call('LeaseService/Acquire', acquire)).toMatchObject({ granted: { token } });
    const other = { ...acquire, requestId: '00000000-0000-4000-8000-000000000001' };
    expect(await call('LeaseService/Acquire', other)).toMatchObject({
      notGranted: { reason: 'NOT_GRANTED_REASON_HELD', current: { token, holder: 'a shell' } },
    });

    const lease = { domain: 'stock/tool', token };
    expect(await call('LeaseService/Renew', { leases: [lease, { domain: 'stock/other', token }] })).toMatchObject({
      results: [{ live: { ttlMs: 60_000 } }, { ended: { lease: { domain: 'stock/other', token } } }],
    });
    expect(await call('LeaseService/Verify', { lease })).toMatchObject({ current: { ttlMs: 60_000 } });
    expect(await call('LeaseService/Get', { domain: 'stock/tool' })).toMatchObject({
      domain: { name: 'stock/tool', lease: { token, holder: 'a shell' } },
    });

    expect(await call('LeaseService/Release', { lease })).toMatchObject({ released: true });
    expect(await call('LeaseService/Release', { lease })).toMatchObject({ released: true });
    expect(await call('LeaseService/Renew', { leases: [lease] })).toMatchObject({
      results: [{ ended: { lease, reason: 'END_REASON_RELEASED' } }],
    });
    const { domain } = (await call('LeaseService/Get', { domain: 'stock/tool' })) as { readonly domain: object };
    expect(domain).toEqual({ name: 'stock/tool' });
  });

  it('are told what is wrong with a request', async () => {
    const { code, stderr } = await curl(
      node.clientAddress,
      'fencepost.v1.LeaseService/Acquire',
      '-d',
      '{"domain":"a//b"}',
    );
    expect(code).not.toBe(0);
    expect(JSON.parse(stderr)).toMatchObject({ code: 'invalid_argument' });
    expect(stderr).toContain('holder has 0 bytes');
    expect(stderr).toContain('domain must be segments');
  });

  it('show the node', async () => {
    expect(await call('ClusterService/GetStatus', {})).toMatchObject({
      cluster: 'test',
      nodeId: 'n1',
      leaderId: 'n1',
      role: 'ROLE_LEADER',
      members: [{ nodeId: 'n1', voter: true }],
    });
  });

  it('leave a node that stops when it is told to, also while somebody watches its health', async () => {
    const { seen, ended } = watchHealth(clientOf(node.clientAddress), '');
    await until('the first status', () => seen.length > 0);
    cluster.signal(node, 'SIGTERM');
    expect(await node.exited).toBe(0);
    await until('the watch ended', ended);
    expect(seen.at(-1)).toBe('NOT_SERVING');
  });
});
