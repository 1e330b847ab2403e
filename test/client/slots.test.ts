/** Names with several slots. */
import { expect, test } from 'vitest';
import type { Domain } from '../../src/base/ids.js';
import { NotGrantedError } from '../../src/client/errors.js';
import { answered, BASE, clientWorld, generous, granted, held, within } from './world.js';

/** A cluster that grants slot 1 of every name. */
function slotWorld() {
  const world = clientWorld();
  const answer = generous();
  world.net.answer = ({ call }) =>
    call.type === 'acquire' && call.slots > 1
      ? answered(granted(`${call.domain}#1` as Domain, call.requestId, BASE + 500, call.ttlMs))
      : answer({ call });
  return world;
}

test('acquires any one of n slots, in each of the three ways', async () => {
  const { time, net, client } = slotWorld();
  const gpus = client.slots('gpu', 4);
  expect(gpus).toMatchObject({ name: 'gpu', count: 4 });
  const lease = await within(time, 100, gpus.acquire({ ttlMs: 9_000, waitMs: 5_000 }));
  expect(lease.domain).toBe('gpu#1');
  expect(net.last('acquire').call).toMatchObject({ domain: 'gpu', slots: 4, ttlMs: 9_000, waitMs: 5_000 });
  await within(time, 100, lease.release());
  expect(net.last('release').call.lease.domain).toBe('gpu#1');
  expect((await within(time, 100, gpus.tryAcquire()))?.domain).toBe('gpu#1');
  expect(
    await within(
      time,
      100,
      gpus.withLease({}, ({ domain }) => domain),
    ),
  ).toBe('gpu#1');
  expect(net.of('release')).toHaveLength(2);
  expect(net.of('acquire').every(({ call }) => call.slots === 4)).toBe(true);
});

test('all slots held', async () => {
  const { time, net, client } = slotWorld();
  net.answer = ({ call }) => (call.type === 'acquire' ? answered(held(call.requestId)) : generous()({ call }));
  const gpus = client.slots('gpu', 4);
  expect(await within(time, 100, gpus.tryAcquire())).toBeUndefined();
  await expect(within(time, 100, gpus.acquire())).rejects.toBeInstanceOf(NotGrantedError);
});

test('one slot is an ordinary domain; numbers and names are checked at once', async () => {
  const { time, client } = slotWorld();
  expect((await within(time, 100, client.slots('gpu', 1).acquire())).domain).toBe('gpu');
  expect(() => client.slots('a#b', 0)).toThrow(/domain "a#b".*slots must be an integer from 1 to 1000, not 0/);
  expect(() => client.slots('x'.repeat(248), 1_001)).toThrow(/slots.*247 bytes/);
});
