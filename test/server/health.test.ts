/** `grpc.health.v1`: the node and its lease service are serving while there is a leader; the cluster service always is. */
import { afterEach, describe, expect, it } from 'vitest';
import { ANSWERING, checkHealth, clientOf, endAll, serve, until, watchHealth } from './kit.js';

afterEach(endAll);

describe('health', () => {
  it.each(['', 'fencepost.v1.LeaseService'])('of "%s" follows the leader', async (service) => {
    const { address, server } = await serve(ANSWERING);
    expect(await checkHealth(clientOf(address), service)).toBe('NOT_SERVING');
    server.setServing(true);
    expect(await checkHealth(clientOf(address), service)).toBe('SERVING');
    server.setServing(false);
    expect(await checkHealth(clientOf(address), service)).toBe('NOT_SERVING');
  });

  it('of a node that has not formed says so', async () => {
    const { address } = await serve();
    expect(await checkHealth(clientOf(address), '')).toBe('NOT_SERVING');
    expect(await checkHealth(clientOf(address), 'fencepost.v1.ClusterService')).toBe('SERVING');
  });

  it('of the cluster service needs no leader', async () => {
    const { address, server } = await serve(ANSWERING);
    expect(await checkHealth(clientOf(address), 'fencepost.v1.ClusterService')).toBe('SERVING');
    server.setServing(false);
    expect(await checkHealth(clientOf(address), 'fencepost.v1.ClusterService')).toBe('SERVING');
  });

  it.each(['fencepost.v1.Lease', 'fencepost.v1.LeaseService/Get', 'grpc.health.v1.Health'])(
    'of "%s" is NOT_FOUND',
    async (service) => {
      const { address } = await serve(ANSWERING);
      expect(await checkHealth(clientOf(address), service)).toBe(5);
    },
  );

  it.each([
    ['', ['NOT_SERVING', 'SERVING', 'NOT_SERVING']],
    ['fencepost.v1.LeaseService', ['NOT_SERVING', 'SERVING', 'NOT_SERVING']],
    ['fencepost.v1.ClusterService', ['SERVING']],
    ['somebody', ['SERVICE_UNKNOWN']],
  ])('watched of "%s" brings each change', async (service, expected) => {
    const { address, server } = await serve(ANSWERING);
    const { stream, seen } = watchHealth(clientOf(address), service);
    await until('the first status', () => seen.length > 0);
    server.setServing(true);
    server.setServing(false);
    await until('every status', () => seen.length >= expected.length);
    expect(seen).toEqual(expected);
    stream.cancel();
  });
});
