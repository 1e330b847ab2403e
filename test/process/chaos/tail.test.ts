import { appendFileSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it, onTestFinished } from 'vitest';
import { Tail } from './tail.js';

function open(): Tail<{ readonly at: number; readonly of: string }> {
  const home = mkdtempSync(join(tmpdir(), 'fencepost-tail-'));
  const tail = new Tail<{ readonly at: number; readonly of: string }>(home);
  onTestFinished(() => {
    tail.close();
    rmSync(home, { recursive: true });
  });
  return tail;
}

it('leaves out what a killed process had not written to its end, and reads what its next start writes', () => {
  const tail = open();
  const before = tail.open('w1');
  appendFileSync(before, '{"at":1,"of":"before"}\n{"at":2,"of"');
  expect(tail.read()).toEqual([{ at: 1, of: 'before' }]);
  const after = tail.open('w1');
  appendFileSync(after, '{"at":3,"of":"after"}\n');
  expect(tail.read(true)).toEqual([{ at: 3, of: 'after' }]);
});

it('reads a line that comes in two parts, and puts the books in the order of their times', () => {
  const tail = open();
  const [first, second] = [tail.open('w1'), tail.open('w2')];
  appendFileSync(first, '{"at":2,"of":"fir');
  appendFileSync(second, '{"at":1,"of":"second"}\n');
  expect(tail.read()).toEqual([{ at: 1, of: 'second' }]);
  appendFileSync(first, 'st"}\n');
  expect(tail.read(true)).toEqual([{ at: 2, of: 'first' }]);
});
