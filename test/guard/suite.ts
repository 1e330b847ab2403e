/** The conformance kit as tests of this repository. */
import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { conformanceCases } from '../../src/guard/conformance/index.js';
import type { ConformanceOptions, GuardSubject } from '../../src/guard/conformance/index.js';

/** Only a broken run takes so long. */
const LIMIT_MS = 180_000;

/**
 * Every case is a test; for one that the guard skips, that its users are told so, and why. Fewer `rounds` of the race are for
 * stores whose clients are slow.
 */
export function describeConformance(subject: GuardSubject, options: ConformanceOptions = {}): void {
  describe(`conformance of ${subject.name}`, () => {
    const readme = readFileSync('src/guard/README.md', 'utf8').replace(/ +/g, ' ');
    for (const { name, skipped, run } of conformanceCases(subject, { limitMs: LIMIT_MS, ...options })) {
      if (skipped === undefined) it(name, run, LIMIT_MS + 1_000);
      else
        it(`${name}: not shown, and the documentation says why`, () => {
          expect(readme).toContain(`| ${subject.name} | ${name} | ${skipped} |`);
        });
    }
  });
}
