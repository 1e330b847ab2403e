/** The judges judged: each is given a history that breaks its rule, and must say so. */
import { describe, expect, it } from 'vitest';
import type { Message } from '../../src/raft/types.js';
import type { DiskView, NodeView } from './invariants.js';
import { Invariants } from './invariants.js';
import { LeaseOracle } from './lease-oracle.js';
import { member, parseConfiguration, parseLog } from './text.js';

const THREE = parseConfiguration('{A,B,C}');

function view(name: string, log: string, more: Partial<NodeView> = {}): NodeView {
  const entries = parseLog(log, 0);
  const last = entries.length;
  return {
    member: member(name),
    run: 1,
    role: 'follower',
    term: entries.at(-1)?.term ?? 0,
    commit: 0,
    applied: 0,
    stable: 0,
    last,
    anchor: { index: 0, term: 0 },
    cut: 0,
    configuration: THREE,
    entries: (from, to) => entries.slice(from, to),
    matches: [],
    ...more,
  };
}

function disk(name: string, log: string, term = 1, vote?: string): DiskView {
  const entries = parseLog(log, 0);
  const hard = { term, vote: vote === undefined ? undefined : member(vote) };
  return { member: member(name), hard, last: entries.length, cut: 0, termAt: (index) => entries[index - 1]?.term };
}

/** The codes that a sequence of observations raises. */
function codes(...steps: { views: NodeView[]; disks?: DiskView[] }[]): string[] {
  const invariants = new Invariants();
  for (const { views, disks = [] } of steps) invariants.observe(views, disks);
  return [...new Set(invariants.faults.map((fault) => fault.split(':')[0] ?? ''))];
}

const leader = { role: 'leader' } as const;

describe('invariants', () => {
  it('accept a plain history', () => {
    const disks = [disk('A', '[1 1:x]'), disk('B', '[1 1:x]'), disk('C', '[]')];
    const a = view('A', '[1 1:x]', { ...leader, commit: 2, stable: 2, matches: [{ member: member('B'), match: 2 }] });
    expect(codes({ views: [a, view('B', '[1 1:x]'), view('C', '[]')], disks })).toEqual([]);
  });

  it('ES: two leaders in a term, also one that resumes it', () => {
    expect(codes({ views: [view('A', '[1]', leader), view('B', '[1]', leader)] })).toEqual(['ES']);
    expect(codes({ views: [view('A', '[1]', leader)] }, { views: [view('A', '[1]', { ...leader, run: 2 })] })).toEqual([
      'ES',
    ]);
  });

  it('ES and DUR: two votes in a term, and one spoken of before it is durable', () => {
    const grant = (to: string): Message => {
      return { type: 'voteReply', from: member('B'), to: member(to), term: 1, granted: true, attempt: 1 };
    };
    const invariants = new Invariants();
    invariants.sent(grant('A'), disk('B', '[]', 1, 'A'), view('B', '[]'));
    expect(invariants.faults).toEqual([]);
    invariants.sent(grant('C'), disk('B', '[]', 1, 'C'), view('B', '[]'));
    expect(invariants.faults).toEqual(['ES: B votes twice in term 1']);
    const early = new Invariants();
    early.sent(grant('A'), disk('B', '[]', 0), view('B', '[]'));
    expect(early.faults).toEqual(['DUR: B speaks of its vote in term 1 before it is durable']);
  });

  it('DUR: an entry acknowledged, or taken for stable, before it is durable', () => {
    const invariants = new Invariants();
    const base = {
      type: 'appendReply',
      from: member('B'),
      to: member('A'),
      term: 1,
      request: 1,
      durable: 0,
      diskLow: false,
    } as const;
    invariants.sent({ ...base, result: { type: 'proved', index: 2 } }, disk('B', '[1]'), view('B', '[1 1:x]'));
    expect(invariants.faults).toEqual(['DUR: B acknowledges 2 in term 1 before it is durable']);
    expect(codes({ views: [view('B', '[1 1:x]', { stable: 2 })], disks: [disk('B', '[1]')] })).toEqual(['DUR']);
  });

  it('LM: other content or another past at one index and term, falling terms, a leader that cuts', () => {
    expect(codes({ views: [view('A', '[1 1:x]'), view('B', '[1 1:y]')] })).toEqual(['LM']);
    expect(codes({ views: [view('A', '[1 2:x]'), view('B', '[2 2:x]')] })).toEqual(['LM']);
    expect(codes({ views: [view('A', '[2 1]')] })).toEqual(['LM']);
    const before = { views: [view('A', '[1 1:x]', leader)] };
    expect(codes(before, { views: [view('A', '[1]', { ...leader, term: 1 })] })).toEqual(['LM']);
  });

  it('LC: a later leader without a committed entry', () => {
    const disks = [disk('A', '[1 1:x]'), disk('B', '[1 1:x]')];
    const first = { views: [view('A', '[1 1:x]', { ...leader, commit: 2, stable: 2 })], disks };
    expect(codes(first, { views: [view('C', '[1 2]', leader)], disks })).toEqual(['LC']);
  });

  it('SMS: another entry committed or applied at one index, one skipped', () => {
    const disks = ['A', 'B', 'C'].map((name) => disk(name, '[1 1:x]'));
    const first = { views: [view('A', '[1 1:x]', { commit: 2 })], disks };
    expect(codes(first, { views: [view('B', '[1 2:y]', { commit: 2 })], disks })).toEqual(['SMS']);
    const invariants = new Invariants();
    invariants.observe(first.views, disks);
    const [, x, y] = parseLog('[1 2:z 2:y]', 0);
    if (x === undefined || y === undefined) throw new Error('two entries were expected');
    invariants.applied(member('B'), 1, x);
    expect(invariants.faults).toEqual(['SMS: B applies another entry at 2 than was committed']);
    invariants.restored(member('C'), 1, 1);
    invariants.applied(member('C'), 1, y);
    expect(invariants.faults.at(-1)).toBe('SMS: C applies 3 after 1');
  });

  it('CQ: committed without a majority of each half; counted and not there', () => {
    const some = [disk('A', '[1]'), disk('B', '[]'), disk('C', '[]')];
    expect(codes({ views: [view('A', '[1]', { commit: 1 })], disks: some })).toEqual(['CQ']);
    const joint = parseConfiguration('{A,B,C}->{C,D,E}');
    const old = [disk('A', '[1]'), disk('B', '[1]'), disk('C', '[1]'), disk('D', '[]'), disk('E', '[]')];
    expect(codes({ views: [view('A', '[1]', { commit: 1, configuration: joint })], disks: old })).toEqual(['CQ']);
    const counting = view('A', '[1]', { ...leader, matches: [{ member: member('B'), match: 1 }] });
    expect(codes({ views: [counting], disks: some })).toEqual(['CQ']);
  });

  it('MONO: term, commit, applied or a match goes back', () => {
    const disks = ['A', 'B', 'C'].map((name) => disk(name, '[1 1 1]'));
    const at = (more: Partial<NodeView>): { views: NodeView[]; disks: DiskView[] } => ({
      views: [view('A', '[1 1 1]', more)],
      disks,
    });
    expect(codes(at({ term: 3 }), at({ term: 2 }))).toEqual(['MONO']);
    expect(codes(at({ commit: 3 }), at({ commit: 2 }))).toEqual(['MONO']);
    expect(codes(at({ commit: 3, applied: 3 }), at({ commit: 3, applied: 2 }))).toEqual(['MONO']);
    const matched = (match: number) => at({ ...leader, matches: [{ member: member('B'), match }] });
    expect(codes(matched(3), matched(2))).toEqual(['MONO']);
    const invariants = new Invariants();
    invariants.restored(member('A'), 1, 5);
    invariants.restored(member('A'), 1, 3);
    expect(invariants.faults).toEqual(['MONO: A: applied 5 restored to 3']);
  });

  it('ORDER: applied above commit, stable above the end', () => {
    const disks = ['A', 'B', 'C'].map((name) => disk(name, '[1 1]'));
    expect(codes({ views: [view('A', '[1 1]', { commit: 1, applied: 2 })], disks })).toEqual(['ORDER']);
    expect(codes({ views: [view('A', '[1]', { stable: 2 })], disks: [] })).toEqual(['ORDER']);
  });

  it('LIN: a read that does not see what was acknowledged before it', () => {
    const invariants = new Invariants();
    invariants.acknowledged('x');
    const mustSee = invariants.acknowledgedSoFar();
    invariants.acknowledged('y');
    invariants.readAnswered('r', mustSee, ['x']);
    expect(invariants.faults).toEqual([]);
    invariants.readAnswered('r', mustSee, ['y']);
    expect(invariants.faults).toEqual(['LIN: read r does not see x']);
  });

  it('ONCE and LEASE: one request with two tokens; a lower token after a greater one was told', () => {
    const oracle = new LeaseOracle();
    oracle.granted('r1', 'd', 5, 0, 1);
    oracle.granted('r1', 'd', 5, 2, 3);
    // Sent before the greater one was told: an old answer that comes late.
    oracle.granted('r2', 'd', 9, 4, 10);
    oracle.granted('r3', 'd', 7, 6, 11);
    expect(oracle.faults).toEqual([]);
    oracle.granted('r4', 'd', 8, 12, 13);
    oracle.granted('r1', 'd', 10, 14, 15);
    expect(oracle.faults).toEqual([
      'LEASE: an acquire of d is granted 8 after 9 was told',
      'ONCE: request r1 was granted 5 and 10',
    ]);
  });
});
