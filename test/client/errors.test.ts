/** The classes of errors, their codes, and the table of them in the README. */
import { readFileSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import { ERRORS } from '../../src/base/errors.js';
import type { Reason } from '../../src/base/errors.js';
import { CLIENT_ERRORS } from '../../src/client/error-codes.js';
import { errorWith, LeaseLostError, NotGrantedError, retold } from '../../src/client/errors.js';
import type { FencepostError } from '../../src/client/errors.js';
import * as main from '../../src/client/index.js';
import { markdownTable } from '../support/markdown.js';

const README = fileURLToPath(new URL('../../README.md', import.meta.url));
const BETWEEN = /(<!-- client errors:.*?-->\n)(.*?)(<!-- \/client errors -->)/s;

type OwnCode = keyof typeof CLIENT_ERRORS;

function example(code: OwnCode): FencepostError {
  switch (code) {
    case 'NOT_GRANTED':
      return new NotGrantedError('d', 'held', undefined, 0);
    case 'LEASE_LOST':
      return new LeaseLostError('d', 7n, undefined);
    case 'OLD_CLUSTER':
    case 'ABORTED':
    case 'CLOSED':
    case 'UNREACHABLE':
    case 'UNEXPECTED_ANSWER':
    case 'INVALID_OPTIONS':
      return errorWith(code, 'text');
  }
}

describe('an error', () => {
  it.each(Object.keys(CLIENT_ERRORS) as OwnCode[])('%s has a class of its own, which the package exports', (code) => {
    const error = example(code);
    const { name, outcome, retryable } = CLIENT_ERRORS[code];
    expect(error).toMatchObject({ code, name, outcome, retryable });
    expect(error).toBeInstanceOf(main.FencepostError);
    expect(error).toBeInstanceOf(main[name]);
    expect(error.constructor).toBe(main[name]);
    expect(String(error)).toMatch(new RegExp(`^${name}: `));
  });

  it.each(Object.keys(ERRORS) as Reason[])('%s, which a node reports, is a ClusterError', (code) => {
    const error = errorWith(code, 'text');
    const { outcome, retryable } = ERRORS[code];
    expect(error).toMatchObject({ code, name: 'ClusterError', outcome, retryable });
    expect(error).toBeInstanceOf(main.ClusterError);
  });

  it('told again keeps class and code', () => {
    const first = errorWith('UNREACHABLE', 'one', { outcome: 'not-done' });
    const again = retold(first, 'two', { outcome: 'unknown', cause: first });
    expect(again).toBeInstanceOf(main.UnreachableError);
    expect(again).toMatchObject({ code: 'UNREACHABLE', message: 'two', outcome: 'unknown', cause: first });
  });

  it('of one class is of no other', () => {
    const classes = Object.values(CLIENT_ERRORS).map(({ name }) => main[name]);
    for (const code of Object.keys(CLIENT_ERRORS) as OwnCode[]) {
      expect(classes.filter((one) => example(code) instanceof one)).toHaveLength(1);
    }
  });
});

describe('README', () => {
  it("has the table of the client's errors that the code has (UPDATE_README=1 writes it)", () => {
    const text = readFileSync(README, 'utf8');
    const rows = Object.entries(CLIENT_ERRORS).map(([code, { name, retryable, outcome, meaning }]) => [
      `\`${name}\``,
      `\`${code}\``,
      retryable ? 'yes' : 'no',
      outcome,
      meaning,
    ]);
    const table = markdownTable([['class', 'code', 'retry', 'outcome', 'what happened'], ...rows]);
    if (process.env['UPDATE_README'] === '1') writeFileSync(README, text.replace(BETWEEN, `$1${table}$3`));
    else expect(BETWEEN.exec(text)?.[2]).toBe(table);
  });
});
