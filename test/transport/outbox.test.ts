import { expect, test } from 'vitest';
import { Outbox } from '../../src/transport/outbox.js';

const part = (bytes: number, fill = 0): Uint8Array => new Uint8Array(bytes).fill(fill);
const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

function collect(outbox: Outbox): { readonly frames: Buffer[]; readonly flushed: (() => void)[] } {
  const frames: Buffer[] = [];
  const flushed: (() => void)[] = [];
  outbox.attach((frame, done) => {
    frames.push(frame);
    flushed.push(done);
  });
  return { frames, flushed };
}

test('what is pushed in one turn leaves as one frame, in order', async () => {
  const outbox = new Outbox({ count: 10, bytes: 1_000 });
  const { frames } = collect(outbox);
  outbox.push(part(2, 1));
  outbox.push(part(3, 2));
  expect(frames).toEqual([]);
  await turn();
  expect(frames.map((frame) => [...frame])).toEqual([[1, 1, 2, 2, 2]]);
  outbox.push(part(1, 3));
  await turn();
  expect(frames).toHaveLength(2);
});

test('a frame ends at half a megabyte, and a greater part goes alone', async () => {
  const outbox = new Outbox({ count: 10, bytes: 10 * 1024 * 1024 });
  const { frames, flushed } = collect(outbox);
  for (const size of [200, 200, 200, 700, 100]) outbox.push(part(size * 1024));
  await turn();
  for (const done of flushed) done();
  expect(frames.map((frame) => frame.byteLength / 1024)).toEqual([400, 200, 700, 100]);
});

test('no more than a megabyte, and a frame, is handed to a stream that does not take it', async () => {
  const outbox = new Outbox({ count: 100, bytes: 100 * 1024 * 1024 });
  const { frames, flushed } = collect(outbox);
  for (let at = 0; at < 10; at += 1) outbox.push(part(500 * 1024));
  await turn();
  expect(frames).toHaveLength(3);
  flushed[0]?.();
  expect(frames).toHaveLength(4);
  flushed[1]?.();
  flushed[2]?.();
  expect(frames).toHaveLength(6);
});

test('what finds no room is refused, by count and by bytes; room comes back', async () => {
  const byCount = new Outbox({ count: 2, bytes: 1_000 });
  expect([1, 2, 3].map((size) => byCount.push(part(size)))).toEqual([true, true, false]);
  const byBytes = new Outbox({ count: 10, bytes: 10 });
  expect([6, 5, 4].map((size) => byBytes.push(part(size)))).toEqual([true, false, true]);
  let empty = 0;
  byBytes.whenEmpty(() => {
    empty += 1;
  });
  await turn();
  expect(empty).toBe(0);
  const { frames } = collect(byBytes);
  await turn();
  expect([empty, frames.map((frame) => frame.byteLength)]).toEqual([1, [10]]);
  expect(byBytes.push(part(10))).toBe(true);
});

test('a detached one drops what waits and hands nothing more to the old stream', async () => {
  const outbox = new Outbox({ count: 10, bytes: 10 * 1024 * 1024 });
  const old = collect(outbox);
  for (let at = 0; at < 4; at += 1) outbox.push(part(512 * 1024, at));
  await turn();
  expect(old.frames).toHaveLength(2);
  outbox.detach();
  expect(outbox.empty).toBe(true);
  const next = collect(outbox);
  outbox.push(part(1, 9));
  await turn();
  // A late word from the old stream counts for nothing.
  old.flushed[0]?.();
  expect(old.frames).toHaveLength(2);
  expect(next.frames.map((frame) => [...frame])).toEqual([[9]]);
});

test('a part that no frame could carry is a defect', () => {
  const outbox = new Outbox({ count: 10, bytes: 10 * 1024 * 1024 });
  expect(() => outbox.push(part(4 * 1024 * 1024 + 1))).toThrow('at most 4194304 fit a frame');
});
