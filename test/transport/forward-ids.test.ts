import { expect, test } from 'vitest';
import type { BootId } from '../../src/base/ids.js';
import { ForwardIds } from '../../src/transport/forward-ids.js';

const BOOT = 'ffffffff000000000000000000000000' as BootId;
const NEXT_BOOT = '00000001000000000000000000000000' as BootId;

test('each attempt has a number of its own, and only the newest of a call counts', () => {
  const ids = new ForwardIds(BOOT);
  const first = ids.issue(7);
  const second = ids.issue(7);
  expect(second).not.toBe(first);
  expect(ids.returned(first)).toBeUndefined();
  expect(ids.returned(second)).toBe(7);
  expect(ids.returned(second)).toBeUndefined();
  expect(ids.take(7)).toBeUndefined();
});

test('no attempt counts once the way broke, and numbers are not used again', () => {
  const ids = new ForwardIds(BOOT);
  const before = ids.issue(7);
  ids.clear();
  expect(ids.returned(before)).toBeUndefined();
  expect(ids.issue(7)).toBeGreaterThan(before);
});

test('processes of one node do not share numbers, which stay exact', () => {
  const numbers = [BOOT, NEXT_BOOT].map((boot) => new ForwardIds(boot).issue(1));
  expect(new Set(numbers).size).toBe(2);
  expect(numbers.every(Number.isSafeInteger)).toBe(true);
});
