/** Audit lines on a real pipe, whose reader is slow or stands still. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { resolve } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { expect, it } from 'vitest';

const MODULE = resolve(import.meta.dirname, '../../dist/node/log.js');

/** A process that logs. */
function logging(script: string) {
  const source = `import { createLog } from ${JSON.stringify(MODULE)}; const log = createLog('info', {}); ${script}`;
  return spawn(process.execPath, ['--input-type=module', '-e', source], { stdio: ['ignore', 'pipe', 'pipe'] });
}

it('a slow reader gets all lines, each whole, though others are written in between', async () => {
  const child = logging(`
    for (let at = 0; at < 20_000; at++) log.audit('lease expired', { at, holder: 'h'.repeat(at % 200) });
    const timer = setInterval(() => log.info('meanwhile'), 1);
    for (let times = 0; times < 30; times++) await log.flush();
    clearInterval(timer);
  `);
  let read = '';
  for await (const chunk of child.stderr) {
    read += String(chunk);
    await pause(1);
  }
  const lines = read
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line) as { readonly at?: number });
  const audited = lines.flatMap(({ at }) => (at === undefined ? [] : [at]));
  expect(audited).toEqual(Array.from({ length: 20_000 }, (_, at) => at));
  expect(lines.length).toBeGreaterThan(audited.length);
});

it('a reader that stands still does not hold up whoever logs', async () => {
  const child = logging(`
    // The pipe holds less than that; whoever waits for it never gets here.
    for (let at = 0; at < 5_000; at++) log.audit('lease expired', { at, holder: 'h'.repeat(200) });
    await log.flush();
    process.stdout.write('on');
  `);
  const [said] = (await once(child.stdout, 'data')) as [Buffer];
  expect(said.toString()).toBe('on');
  child.kill('SIGKILL');
});
