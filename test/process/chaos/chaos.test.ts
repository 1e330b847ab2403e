import { execFile } from 'node:child_process';
import { resolve } from 'node:path';
import { expect, it } from 'vitest';

const ROOT = resolve(import.meta.dirname, '../../..');

/** Runs the command as a user does. */
function chaos(...args: string[]): Promise<{ readonly code: number; readonly text: string }> {
  return new Promise((done) => {
    const script = resolve(ROOT, 'scripts/chaos.js');
    execFile(process.execPath, [script, ...args], { cwd: ROOT, timeout: 170_000 }, (error, text, errors) => {
      done({ code: error === null ? 0 : Number(error.code ?? -1), text: text + errors });
    });
  });
}

it('a short run of real processes under random faults violates nothing', async () => {
  const { code, text } = await chaos('--minutes', '0.25');
  expect(code, text).toBe(0);
  expect(text).toMatch(/^verdict after \d+ s: nothing violated$/m);
  const [, grants = '0', claims = '0', writes = '0'] =
    /grants (\d+), claims (\d+), writes (\d+)/.exec(text) ?? expect.fail(text);
  for (const count of [grants, claims, writes]) expect(Number(count), text).toBeGreaterThan(0);
  const made = [...text.matchAll(/^ +(\d+) {2}\S/gm)].reduce((sum, [, count]) => sum + Number(count), 0);
  expect(made, text).toBeGreaterThan(3);
});

it('wrong arguments end with 2', async () => {
  expect((await chaos('--minutes', '0', '--nodes', '4')).code).toBe(2);
});
