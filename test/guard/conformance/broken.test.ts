/** The kit itself: a right guard passes all of it, and each broken one is caught by the cases that are about its fault. */
import { describe, expect, it } from 'vitest';
import { CASE_NAMES, checkConformance } from '../../../src/guard/conformance/index.js';
import { BROKEN } from './broken.js';
import { Reference, subjectOf } from './reference.js';

/** A case that hangs, as one does here, is given up after this time; the others take a tenth of it. */
const LIMIT_MS = 5_000;
/** So that the whole table takes seconds: a fault that shows in an interleaving shows in most rounds. */
const ROUNDS = 100;

describe('the reference guard', () => {
  it('passes every case, none skipped', async () => {
    const results = await checkConformance(subjectOf('reference', () => new Reference()));
    expect(results).toEqual(CASE_NAMES.map((name) => ({ name, status: 'passed', reason: undefined })));
  });
});

describe('a case', () => {
  it.each(CASE_NAMES)('"%s" catches a guard', (name) => {
    expect(BROKEN.some(({ caught }) => caught.includes(name))).toBe(true);
  });
});

describe('a guard that', () => {
  it.concurrent.each(BROKEN.map((broken) => broken))('$what is caught', async ({ what, create, caught }) => {
    const results = await checkConformance(subjectOf(what, create), { limitMs: LIMIT_MS, rounds: ROUNDS });
    const failed = results.filter(({ status }) => status === 'failed');
    expect(failed.map(({ name }) => name)).toEqual(caught);
  });
});
