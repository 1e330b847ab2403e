import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { afterEach, describe, expect, it } from 'vitest';

const directories: string[] = [];
afterEach(() => {
  for (const directory of directories.splice(0)) rmSync(directory, { recursive: true });
});

/** Runs these test files by the real runner with the real reporter. */
function run(files: Readonly<Record<string, string>>, environment: Readonly<Record<string, string>> = {}) {
  const directory = mkdtempSync(join(tmpdir(), 'fencepost-tally-'));
  directories.push(directory);
  for (const [name, text] of Object.entries(files)) writeFileSync(join(directory, name), text);
  const { status, stdout } = spawnSync(
    process.execPath,
    [
      ...[resolve('node_modules/vitest/vitest.mjs'), 'run', '--root', directory, '--globals', '--pool', 'forks'],
      ...['--reporter', resolve('test/support/tally.ts')],
    ],
    { env: { ...process.env, FENCEPOST_FORBID_SKIPS: '0', ...environment }, encoding: 'utf8', timeout: 60_000 },
  );
  const lines = stdout.trimEnd().split('\n');
  return { status, last: lines.at(-1), lines };
}

const PASSES = "test('passes', () => {});";
const FAILS = "test('fails', () => expect(1).toBe(2));";

describe('the closing line', { timeout: 120_000 }, () => {
  it('counts what passed', () => {
    expect(run({ 'a.test.js': PASSES, 'b.test.js': PASSES })).toMatchObject({
      status: 0,
      last: '2 passed, 0 failed, 0 skipped',
    });
  });

  it('counts failures', () => {
    expect(run({ 'a.test.js': `${PASSES} ${FAILS}` })).toMatchObject({
      status: 1,
      last: '1 passed, 1 failed, 0 skipped',
    });
  });

  it('names what was skipped and why, and passes where that is allowed', () => {
    const { status, last, lines } = run({
      'a.test.js': `${PASSES} test('late', (context) => context.skip('no disk')); test.skip('never', () => {});`,
    });
    expect({ status, last }).toEqual({ status: 0, last: '1 passed, 0 failed, 2 skipped' });
    expect(lines).toContain('skipped: a.test.js > late (no disk)');
    expect(lines).toContain('skipped: a.test.js > never (no reason given)');
  });

  it('comes with a failure when something was skipped where nothing may be', () => {
    const { status, last, lines } = run(
      { 'a.test.js': "test.skip('never', () => {});" },
      { FENCEPOST_FORBID_SKIPS: '1' },
    );
    expect({ status, last }).toEqual({ status: 1, last: '0 passed, 1 failed, 1 skipped' });
    expect(lines).toContain(
      'Nothing may be skipped here (FENCEPOST_FORBID_SKIPS=1): provide what the tests above need.',
    );
  });

  it('counts a worker that was killed', () => {
    const { status, last } = run({
      'a.test.js': PASSES,
      'b.test.js': "test('dies', () => process.kill(process.pid, 'SIGKILL'));",
    });
    expect(status).toBe(1);
    expect(last).toMatch(/^1 passed, [1-9] failed, 0 skipped$/);
  });

  it('counts a rejection that comes after the last test, beside a test that fails', () => {
    const { status, last } = run({
      'a.test.js': `${PASSES} ${FAILS} afterAll(() => { Promise.reject(new Error('late')); });`,
    });
    expect({ status, last }).toEqual({ status: 1, last: '1 passed, 2 failed, 0 skipped' });
  });

  it('counts a file that cannot be imported beside a test that fails', () => {
    expect(run({ 'a.test.js': `${PASSES} ${FAILS}`, 'b.test.js': "import './none.js';" })).toMatchObject({
      status: 1,
      last: '1 passed, 2 failed, 0 skipped',
    });
  });

  it('counts a run that failed before any test, as with a global set-up', () => {
    const config = "export default { test: { globalSetup: ['./setup.js'] } };";
    const setup = "export default () => { throw new Error('no'); };";
    expect(run({ 'vitest.config.js': config, 'setup.js': setup, 'a.test.js': PASSES })).toMatchObject({
      status: 1,
      last: '0 passed, 1 failed, 0 skipped',
    });
  });
});
