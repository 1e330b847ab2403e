/** The runner over seeds whose outcome is known; what the simulator itself does is not its business. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { bundle, removeBundles } from './bundle.js';
import { Worker } from './pool.js';
import { main } from './sim.js';

const FAKE = 'test/sim/runner/fake.child.ts';

async function simulate(...args: string[]): Promise<{ readonly code: number; readonly text: string }> {
  const lines: string[] = [];
  const code = await main(
    args,
    (line) => {
      lines.push(line);
    },
    FAKE,
  );
  return { code, text: lines.join('\n') };
}

describe('npm run sim', () => {
  it('ends with 0 when every seed is clean', async () => {
    const { code, text } = await simulate('--from', '50', '--seeds', '40', '--jobs', '2');
    expect(text).toContain('40 seeds from 50');
    expect(text).toContain('2000 events and 30.0 grants a seed');
    expect(text).toMatch(/crash +40\n/);
    expect(text).toMatch(/never +0 {2}← never/);
    expect(code).toBe(0);
  });

  it('shows a failed seed with one command that replays it and with the faults that it needs', async () => {
    const { code, text } = await simulate('--from', '1', '--seeds', '12', '--jobs', '1');
    expect(code).toBe(1);
    expect(text).toContain('seed 7 failed after 1235 ms of virtual time: ES (check)\ntwo leaders in term 2');
    expect(text).toContain('Replay with:  npm run sim -- --seed 7 --without 0,1,2,4,5,6,7,9,10,11');
    expect(text).toContain('Faults that it needs (2):\n  3 fault of kind 0\n  8 fault of kind 2\n');
    expect(text).toContain('  elect B\n  crash A');
    expect(text).toContain('7 seeds from 1 in');
  });

  it('goes on after a failure when asked to', async () => {
    const { code, text } = await simulate('--from', '1', '--seeds', '12', '--jobs', '1', '--all');
    expect(code).toBe(1);
    expect(text).toContain('12 seeds from 1 in');
  });

  it('replays the command that it printed', async () => {
    const { code, text } = await simulate('--seed', '7', '--without', '0,1,2,4,5,6,7,9,10,11');
    expect(code).toBe(1);
    expect(text).toContain('seed 7 failed');
    const without = await simulate('--seed', '7', '--without', '3');
    expect(without.code).toBe(0);
  });

  it('finds a seed whose two runs differ', async () => {
    const { code, text } = await simulate('--seed', '21');
    expect(code).toBe(1);
    expect(text).toContain('seed 21 is not deterministic');
  });

  it.each([
    [['--seeds', 'many'], '--seeds takes a whole number, not "many"'],
    [['--judges', 'none'], '--judges takes all, checks, relation, not "none"'],
    [['--sede', '1'], "Unknown option '--sede'"],
  ])('refuses %j', async (args, message) => {
    await expect(simulate(...args)).rejects.toThrow(message);
  });
});

describe('a worker', () => {
  let module: string;
  beforeAll(async () => {
    module = await bundle(FAKE);
  });
  afterAll(() => {
    removeBundles();
  });

  it('reports a run that takes its process down, and runs the next one in a new process', async () => {
    const worker = new Worker(module);
    const died = await worker.run(13);
    expect(died.failure).toMatchObject({ code: 'DIED' });
    expect(died.failure?.text).toContain('the process ended with 3');
    const next = await worker.run(1);
    expect(next.digest).toBe('digest 1');
    worker.close();
  });

  it('reports a run that never ends', async () => {
    const worker = new Worker(module, 1_000);
    const hung = await worker.run(14);
    expect(hung.failure).toMatchObject({ code: 'HUNG', text: 'no result within 1 s' });
    const next = await worker.run(1);
    expect(next.digest).toBe('digest 1');
    worker.close();
  });

  it('reports a run that breaks, with its stack', async () => {
    const worker = new Worker(module);
    const broken = await worker.run(15);
    expect(broken.failure).toMatchObject({ code: 'BROKEN' });
    expect(broken.failure?.text).toMatch(/this run broke[^]*at fail .*fake\.child\.ts/);
    worker.close();
  });
});
