import { describe, expect, it } from 'vitest';
import { runScenario, WORLDS } from './run.js';

const HEADER = '# Source: none. Breaks: nothing.\n# Fails when: never.\n';

function run(text: string, kind = 'raft'): ReturnType<typeof runScenario> {
  const world = WORLDS[kind];
  if (world === undefined) throw new Error(`no world ${kind}`);
  return runScenario(
    text,
    world((message) => message),
  );
}

describe('a scenario file', () => {
  it('fails without a claim', () => {
    expect(run(`${HEADER}nodes {A,B,C}\n`).faults).toEqual(['no expect line: the scenario claims nothing']);
  });

  it('fails without its header', () => {
    const { faults } = run('# Source: none.\nnodes {A}\nexpect leader none\n');
    expect(faults).toEqual([
      'the header lacks "Breaks:" (the property code)',
      'the header lacks "Fails when:" (the removal it catches)',
    ]);
  });

  it('reports each claim that does not hold, with its line, and goes on', () => {
    const { faults } = run(`${HEADER}A* t1 {A}\nexpect leader none\nput x\nexpect applied A [x]\nexpect not acked x\n`);
    expect(faults).toEqual([
      'line 4 "expect leader none": expect leader none: found A',
      'line 7 "expect not acked x": expect not acked x: found acked',
    ]);
  });

  it('takes an unknown command, claim or member for a fault', () => {
    expect(run(`${HEADER}jump A\nexpect leader none\n`).faults[0]).toContain('no command "jump"');
    expect(run(`${HEADER}nodes {A}\nexpect glory A\n`).faults[0]).toContain('no claim "glory"');
    expect(run(`${HEADER}nodes {A}\ncrash B\nexpect leader none\n`).faults[0]).toContain('no member B');
  });

  it('is rewritten with another trace and the same commands and claims', () => {
    const script = `${HEADER}\nA* t1 {A}\n    an old line\n# why\nput x\nexpect acked x # of A\n`;
    const { faults, rewritten } = run(script);
    expect(faults).toEqual([]);
    expect(rewritten).not.toContain('an old line');
    expect(rewritten).toContain('\nput x\n    A writes 3: t1 vote A [1:x]\n');
    expect(run(rewritten).rewritten).toBe(rewritten);
    const kept = (text: string): string[] => text.split('\n').filter((line) => !line.startsWith('    '));
    expect(kept(rewritten)).toEqual(kept(script));
  });

  it('ends with the command that breaks an invariant', () => {
    // Two members with another entry of one index and term: a disk that no run can leave.
    const { faults } = run(`${HEADER}disk0 A t1 [1:x]\ndisk0 B t1 [1:y]\nnodes {A,B}\ntick 1\nexpect leader none\n`);
    expect(faults).toEqual(['line 5 "nodes {A,B}": LM: B has 1@1 "after 0: y", elsewhere it is "after 0: x"']);
  });

  it('can speak of whole replicas', () => {
    const { faults } = run(
      `${HEADER}A* {A,B,C}\nacquire x d\nexpect answer x granted 2\nexpect domain d at B = 7\n`,
      'lease',
    );
    expect(faults).toEqual(['line 6 "expect domain d at B = 7": expect domain d at B = 7: found 2']);
  });
});
