/** The node of `fencepost/testing` when its store fails: nothing may go on as if nothing had happened. */
import { createConnection } from 'node:net';
import { connect } from '../../src/client/index.js';
import { describe, expect, it } from 'vitest';
import { startLoneNode } from '../../src/node/lone-node.js';
import { createMemoryDisk, openMemoryStore } from '../../src/testing/memory-store.js';
import type { MemoryStore } from '../../src/testing/memory-store.js';

function listens(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = createConnection(port, '127.0.0.1');
    const end = (open: boolean) => () => {
      socket.destroy();
      resolve(open);
    };
    socket.once('connect', end(true)).once('error', end(false));
  });
}

describe('a lone node', () => {
  it('tells of a failed write once, answers nothing more, and rejects its stop', async () => {
    let store: MemoryStore | undefined;
    const failures: Error[] = [];
    const node = await startLoneNode({
      cluster: 'test',
      createStore: (genesis) => (store = openMemoryStore(createMemoryDisk(genesis))),
      failed: (error) => failures.push(error),
    });
    await using client = connect({ endpoints: [`127.0.0.1:${node.port}`], callTimeoutMs: 1_000 });
    const lease = await client.acquire('before');
    expect(lease.isHeld()).toBe(true);
    store?.fail('EIO');
    await expect(client.acquire('after')).rejects.toMatchObject({ outcome: 'unknown' });
    expect(failures).toHaveLength(1);
    await expect(node.stop()).rejects.toBe(failures[0]);
    await expect.poll(() => listens(node.port)).toBe(false);
  });

  it('that cannot store its record does not start', async () => {
    const start = startLoneNode({
      cluster: 'test',
      createStore: () => {
        throw new Error('no memory');
      },
      failed: () => undefined,
    });
    await expect(start).rejects.toThrow('no memory');
  });
});
