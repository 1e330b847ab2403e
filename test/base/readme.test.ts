import { readFileSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import { ERRORS } from '../../src/base/errors.js';
import { markdownTable } from '../support/markdown.js';

const README = fileURLToPath(new URL('../../README.md', import.meta.url));
const CODES: Readonly<Record<number, string>> = {
  3: 'INVALID_ARGUMENT',
  4: 'DEADLINE_EXCEEDED',
  5: 'NOT_FOUND',
  8: 'RESOURCE_EXHAUSTED',
  9: 'FAILED_PRECONDITION',
  13: 'INTERNAL',
  14: 'UNAVAILABLE',
};
const BETWEEN = /(<!-- errors:.*?-->\n)(.*?)(<!-- \/errors -->)/s;

function errorTable(): string {
  const rows = Object.entries(ERRORS).map(([reason, { code, retryable, outcome, remedy }]) => [
    `\`${reason}\``,
    CODES[code] ?? String(code),
    retryable ? 'yes' : 'no',
    outcome,
    remedy,
  ]);
  return markdownTable([['reason', 'gRPC code', 'retry', 'outcome', 'what to do'], ...rows]);
}

describe('README', () => {
  const text = readFileSync(README, 'utf8');

  it('has the table of errors that the code has (UPDATE_README=1 writes it)', () => {
    if (process.env['UPDATE_README'] === '1') writeFileSync(README, text.replace(BETWEEN, `$1${errorTable()}$3`));
    else expect(BETWEEN.exec(text)?.[2]).toBe(errorTable());
  });

  it('has at most 300 lines', () => {
    expect(text.split('\n').length).toBeLessThanOrEqual(301);
  });
});
