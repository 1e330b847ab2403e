import { describe, expect, it } from 'vitest';
import type { RunResult } from '../result.js';
import { catchOf, patchedFunctions, thrownIn } from './catch.js';
import { compileFaults } from './compiles.js';
import { patchesOf } from './switch.js';
import { SWITCHES } from './switches.js';

describe('the switches', () => {
  it('have names of their own', () => {
    expect(new Set(SWITCHES.map(({ name }) => name)).size).toBe(SWITCHES.length);
  });

  it('are as many of each area as the issue asks for', () => {
    const of = (...areas: string[]): number => SWITCHES.filter(({ area }) => areas.includes(area)).length;
    expect(SWITCHES.length).toBeGreaterThanOrEqual(55);
    expect(of('lease', 'client')).toBeGreaterThanOrEqual(14);
    expect(of('storage')).toBeGreaterThanOrEqual(8);
    expect(of('forming')).toBeGreaterThanOrEqual(5);
  });

  it('fit the sources, each exactly once, and leave code that compiles', () => {
    expect(compileFaults(SWITCHES.map(patchesOf))).toEqual([]);
  }, 120_000);

  it('stand in functions that a stack trace can name', () => {
    const nowhere = SWITCHES.filter((each) => patchedFunctions(each).size === 0).map(({ name }) => name);
    expect(nowhere).toEqual([]);
  });
});

const STACK = `AssertionFailed: the log would be cut at 3
    at assert (/fencepost/src/base/assert.ts:18:9)
    at cutEntries$1 (/fencepost/src/raft/log.ts:61:3)
    at cutLog (/fencepost/src/raft/persist.ts:40:3)`;

function failed(by: 'check' | 'assertion' | 'relation', code: string, text: string): RunResult {
  return {
    seed: 1,
    failure: { by, code, text, at: 0 },
    digest: '',
    events: 0,
    grants: 0,
    counts: {},
    trace: [],
    faults: [],
  };
}

describe('a catch', () => {
  it('is named by the function that threw', () => {
    expect(thrownIn(STACK)).toBe('cutEntries');
    expect(thrownIn(STACK.replace('at assert', 'at new AssertionFailed'))).toBe('cutEntries');
    expect(thrownIn('    at Renewer.#answered (/fencepost/src/client/renewer.ts:1:1)')).toBe('#answered');
    expect(thrownIn('no stack')).toBeUndefined();
  });

  it('is a check, the relation, or an assertion elsewhere; nothing else', () => {
    const patched = new Set(['cutLog']);
    expect(catchOf(failed('check', 'ES', ''), patched, 'all')).toBe('ES');
    expect(catchOf(failed('relation', 'append', ''), patched, 'all')).toBe('relation append');
    expect(catchOf(failed('assertion', 'NOCRASH', STACK), patched, 'all')).toBe('assertion in cutEntries');
    expect(catchOf(failed('assertion', 'NOCRASH', STACK), new Set(['cutEntries']), 'all')).toBeUndefined();
    expect(catchOf(failed('assertion', 'NOCRASH', 'no stack'), patched, 'all')).toBeUndefined();
    expect(catchOf(failed('check', 'HUNG', ''), patched, 'all')).toBeUndefined();
    expect(catchOf({ ...failed('check', 'ES', ''), failure: undefined }, patched, 'all')).toBeUndefined();
  });

  it('by the relation alone is of the relation alone', () => {
    expect(catchOf(failed('check', 'ES', ''), new Set(), 'relation')).toBeUndefined();
    expect(catchOf(failed('relation', 'append', ''), new Set(), 'relation')).toBe('relation append');
  });
});
