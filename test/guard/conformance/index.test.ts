/** What the kit does with a subject, whatever its guard: skips, names, limits, messages. */
import { describe, expect, it } from 'vitest';
import { CASE_NAMES, checkConformance, conformanceCases } from '../../../src/guard/conformance/index.js';
import type { CaseName, ConformanceOptions, GuardedStore } from '../../../src/guard/conformance/index.js';
import { CheckThenWrite } from './broken-steps.js';
import { NOTHING, Reference, subjectOf } from './reference.js';

const FEW: ConformanceOptions = { rounds: 5 };

function run(name: CaseName, create: () => GuardedStore, options: ConformanceOptions = FEW): Promise<void> {
  const found = conformanceCases(subjectOf('mine', create), options).find((each) => each.name === name);
  if (found === undefined) throw new Error(`no case ${name}`);
  return found.run();
}

/** The reference without its optional methods. */
function bare(): GuardedStore {
  const store = new Reference();
  return {
    open: (lease) => store.open(lease),
    write: (lease, item, value, between) => store.write(lease, item, value, between),
    read: (domain, item) => store.read(domain, item),
    close: () => store.close(),
  };
}

describe('the cases', () => {
  it('are all there, each under its own name', () => {
    const cases = conformanceCases(subjectOf('mine', bare));
    expect(cases.map(({ name }) => name)).toEqual(CASE_NAMES);
    expect(new Set(CASE_NAMES).size).toBe(CASE_NAMES.length);
    expect(cases.every(({ skipped }) => skipped === undefined)).toBe(true);
  });

  it('that are skipped are reported with the reason, and do not pass when they are run all the same', async () => {
    const skips = { 'lost response': 'nothing is sent', restart: 'it has one life' } as const;
    const subject = { ...subjectOf('mine', () => new Reference()), skips };
    const results = await checkConformance(subject, FEW);
    expect(results.filter(({ status }) => status === 'skipped')).toEqual([
      { name: 'lost response', status: 'skipped', reason: 'nothing is sent' },
      { name: 'restart', status: 'skipped', reason: 'it has one life' },
    ]);
    expect(results.filter(({ status }) => status === 'passed')).toHaveLength(CASE_NAMES.length - 2);
    const restart = conformanceCases(subject).find(({ name }) => name === 'restart');
    expect(restart?.skipped).toBe('it has one life');
    await expect(restart?.run()).rejects.toThrow('conformance of mine, restart: skipped, because it has one life');
  });

  it('that need what the store lacks fail, and say what to do', async () => {
    const results = await checkConformance(subjectOf('mine', bare), FEW);
    const failed = results.filter(({ status }) => status === 'failed');
    expect(Object.fromEntries(failed.map(({ name, reason }) => [name, /`(\w+)`/.exec(reason ?? '')?.[1]]))).toEqual({
      'stale after delete and re-creation': 'remove',
      'several domains in one mutation': 'writeAll',
      'crash between check and commit': 'writeAndCrash',
      'lost response': 'writeLosingResponse',
      restart: 'restart',
      'passage of time': 'age',
      'poison token, capped': 'maxJump',
      'poison token, reset': 'reset',
      'another issuer, allowed': 'allowIssuer',
      'write without a lease': 'writeWithoutLease',
    });
    expect(failed.every(({ reason }) => reason?.endsWith('add it, or skip this case and say why'))).toBe(true);
  });

  it.each([
    'stale behind a raise',
    'raise during a stale write',
    'raise during the first write',
    'failed work',
  ] as const)('"%s" does not pass when `between` is never awaited', async (name) => {
    class Hasty extends Reference {
      override write(...[lease, item, value]: Parameters<Reference['write']>) {
        return super.write(lease, item, value, NOTHING);
      }
    }
    await expect(run(name, () => new Hasty())).rejects.toThrow(/`between`.*skip this case and say so/);
  });
});

describe('a run', () => {
  it('says which guard, which case, what happened, and what had to', async () => {
    await expect(run('raise during the first write', () => new CheckThenWrite())).rejects.toThrow(
      'conformance of mine, raise during the first write: a write under token 5 that was checked before the fence was ' +
        'raised to 6, and committed after it, ended as applied',
    );
  });

  it('of the race names its seed and its round', async () => {
    const failing = run('two holders racing', () => new CheckThenWrite(), { rounds: 1_000, seed: 7 });
    await expect(failing).rejects.toThrow(/two holders racing: round \d+ of 1000, seed 7: /);
  });

  it('that hangs is given up', async () => {
    class Hangs extends Reference {
      override read(): Promise<string | undefined> {
        return new Promise(() => undefined);
      }
    }
    const hanging = run('first write', () => new Hangs(), { limitMs: 50 });
    await expect(hanging).rejects.toThrow('not done within 50 ms: the guard or its store hangs');
  });

  it('takes `retry` for an answer for a while, and not for ever', async () => {
    class Busy extends Reference {
      #left: number;
      constructor(times: number) {
        super();
        this.#left = times;
      }
      override write(...args: Parameters<Reference['write']>) {
        if (this.#left-- <= 0) return super.write(...args);
        return Promise.resolve({ status: 'retry', attempts: 1, cause: 'busy' } as const);
      }
    }
    await run('first write', () => new Busy(3));
    await expect(run('first write', () => new Busy(Infinity))).rejects.toThrow('"status":"retry"');
  });

  it('has a store of its own, which is closed whatever happens', async () => {
    let [created, closed] = [0, 0];
    class Counted extends CheckThenWrite {
      override close(): Promise<void> {
        closed++;
        return super.close();
      }
    }
    const results = await checkConformance(
      subjectOf('mine', () => {
        created++;
        return new Counted();
      }),
      FEW,
    );
    expect([created, closed]).toEqual([CASE_NAMES.length, CASE_NAMES.length]);
    expect(results.some(({ status }) => status === 'failed')).toBe(true);
  });
});

describe('what cannot be', () => {
  it('is refused with every fault', () => {
    const skips: Record<string, string> = { restart: ' ', 'no such case': 'x' };
    const wrong = () =>
      conformanceCases({ ...subjectOf('mine', bare), skips }, { rounds: 0, seed: 0.5, limitMs: 2 ** 31 });
    expect(wrong).toThrow(TypeError);
    expect(wrong).toThrow(/mine: skips restart for no reason; skips no such case.*rounds.*seed.*limitMs/);
  });
});
