import { describe, expect, it } from 'vitest';
import { AssertionFailed } from '../../src/base/assert.js';
import type { Input, Member, Message } from '../../src/raft/types.js';
import { roleName } from '../../src/raft/view.js';
import { A, B, C, configurationOf, Core, entries, entry, fresh, member, only } from './kit.js';

const VOTERS = configurationOf([A, B, C]);
const D = member('D');
const NONE = { index: 0, term: 0 };
const TICK: Input = { type: 'tick' };

function preVote(from: Member, to: Member, term: number, last = NONE): Message {
  return { type: 'preVote', from, to, term, last, attempt: 1 };
}
function vote(from: Member, to: Member, term: number, last = NONE, transfer = false): Message {
  return { type: 'vote', from, to, term, last, attempt: 1, transfer };
}
function heartbeat(from: Member, to: Member, term: number, commit = 0): Message {
  return { type: 'heartbeat', from, to, term, commit, round: 0 };
}
/** B, which follows A in term 1, with nothing left to write. */
function following(configuration = VOTERS): Core {
  const core = new Core(B, fresh(configuration, { hard: { term: 1, vote: A } }));
  core.receive(heartbeat(A, B, 1));
  return core;
}
const granted = (messages: readonly Message[]): unknown[] =>
  messages.map((message) => ('granted' in message ? message.granted : message.type));

describe('pre-vote', () => {
  it('changes nothing durable and no timer on either side', () => {
    const core = new Core(B, fresh(VOTERS));
    core.tick(9);
    expect(granted(core.receive(preVote(A, B, 5)))).toEqual([true]);
    expect(core.raft.hard).toEqual({ term: 0, vote: undefined });
    expect(core.raft.timer.elapsed).toBe(9);
    expect(core.write).toBeUndefined();
  });

  it('is refused, like a vote, while a leader was heard within the least time-out', () => {
    const core = following();
    core.tick(9);
    expect(granted(core.receive(preVote(C, B, 2)))).toEqual([false]);
    expect(core.receive(vote(C, B, 2))).toEqual([]);
    expect(core.raft.hard.term).toBe(1);
    core.tick(1);
    expect(granted(core.receive(preVote(C, B, 2)))).toEqual([true]);
    core.receive(vote(C, B, 2));
    expect(granted(core.flush())).toEqual([true]);
  });

  it('a vote after a hand-over is not subject to stickiness', () => {
    const core = following();
    core.receive(vote(C, B, 2, NONE, true));
    expect(granted(core.flush())).toEqual([true]);
  });

  it('is refused by a leader, which stays', () => {
    const core = new Core(A, fresh(VOTERS));
    core.elect(B);
    expect(
      granted(core.receive(preVote(C, A, 9, { index: 9, term: 9 }), vote(C, A, 9, { index: 9, term: 9 }))),
    ).toEqual([false]);
    expect(roleName(core.raft)).toBe('leader');
  });

  it('a refusal with a higher term moves the asker there, or old terms loop (E3)', () => {
    const core = new Core(A, fresh(VOTERS, { hard: { term: 5, vote: undefined } }));
    const [asked] = only(core.tickUntil('preVote'), 'preVote');
    const attempt = asked?.attempt ?? 0;
    core.receive({ type: 'preVoteReply', from: C, to: A, term: 9, granted: false, attempt });
    expect(core.raft.hard).toEqual({ term: 9, vote: undefined });
    core.flush();
    expect(only(core.tickUntil('preVote'), 'preVote')[0]?.term).toBe(10);
  });

  it('terms do not rise while nobody gets a quorum (E1, E10)', () => {
    const core = new Core(A, fresh(VOTERS));
    core.tick(500);
    expect(core.raft.hard.term).toBe(0);
    expect(core.write).toBeUndefined();
  });
});

describe('answers to a campaign', () => {
  it('count for that campaign only, once, and not a pre-vote as a vote (R7)', () => {
    const five = configurationOf([A, B, C, D, member('E')]);
    const core = new Core(A, fresh(five));
    const [old] = only(core.tickUntil('preVote'), 'preVote');
    const [now] = only(core.tickUntil('preVote'), 'preVote');
    expect(now?.attempt).toBeGreaterThan(old?.attempt ?? 0);
    const reply = { type: 'preVoteReply', to: A, term: 1, granted: true } as const;
    core.receive({ ...reply, from: B, attempt: old?.attempt ?? 0 }, { ...reply, from: C, attempt: old?.attempt ?? 0 });
    core.receive({ ...reply, from: B, attempt: now?.attempt ?? 0 }, { ...reply, from: B, attempt: now?.attempt ?? 0 });
    expect(core.raft.hard.term).toBe(0);
    core.receive({ ...reply, from: C, attempt: now?.attempt ?? 0 });
    const [asked] = only(core.flush(), 'vote');
    expect(core.raft.hard).toEqual({ term: 1, vote: A });
    core.receive({ ...reply, from: D, attempt: asked?.attempt ?? 0 });
    core.receive({ type: 'voteReply', from: D, to: A, term: 1, granted: true, attempt: now?.attempt ?? 0 });
    core.receive({ type: 'voteReply', from: B, to: A, term: 1, granted: true, attempt: asked?.attempt ?? 0 });
    expect(roleName(core.raft)).toBe('candidate');
    core.receive({ type: 'voteReply', from: C, to: A, term: 1, granted: true, attempt: asked?.attempt ?? 0 });
    expect(roleName(core.raft)).toBe('leader');
  });

  it('of pairs that are not listed count nothing: a wiped member is another one (F10)', () => {
    const core = new Core(A, fresh(VOTERS));
    const [asked] = only(core.tickUntil('preVote'), 'preVote');
    const reply = { type: 'preVoteReply', to: A, term: 1, granted: true, attempt: asked?.attempt ?? 0 } as const;
    core.receive({ ...reply, from: member('C', 'd4') }, { ...reply, from: D });
    expect(core.raft.hard.term).toBe(0);
  });

  it('the own timer is put off by a vote given (E5), and drawn anew for each attempt', () => {
    const core = new Core(B, fresh(VOTERS));
    core.tick(core.raft.timer.timeout - 1);
    core.receive(vote(A, B, 1));
    core.tick(1);
    expect(roleName(core.raft)).toBe('follower');
    const drawn = new Set<number>();
    for (let attempt = 0; attempt < 20; attempt++) {
      core.tickUntil('preVote');
      drawn.add(core.raft.timer.timeout);
    }
    expect(drawn.size).toBeGreaterThan(3);
    expect([...drawn].every((ticks) => ticks >= 10 && ticks <= 20)).toBe(true);
  });

  it('members with one seed draw different time-outs (E6)', () => {
    const drawn = [A, B, C].map((self) => {
      const { raft } = new Core(self, fresh(VOTERS), { electionMaxTicks: 1_000 });
      return raft.timer.timeout;
    });
    expect(new Set(drawn).size).toBe(3);
  });
});

describe('who campaigns', () => {
  function campaigns(core: Core): boolean {
    core.tick(60);
    return roleName(core.raft) === 'candidate';
  }

  it('not who is not listed, and not a learner; but a voter of the outgoing half does (M6)', () => {
    expect(campaigns(new Core(D, fresh(VOTERS)))).toBe(false);
    expect(campaigns(new Core(member('B', 'd2'), fresh(VOTERS)))).toBe(false);
    expect(campaigns(new Core(D, fresh(configurationOf([A, B, C], { learners: [D] }))))).toBe(false);
    expect(campaigns(new Core(A, fresh(configurationOf([B], { outgoing: [A, B], learners: [A] }))))).toBe(true);
  });

  it('answers votes all the same (M10, S3)', () => {
    const core = new Core(D, fresh(VOTERS));
    expect(granted(core.receive(preVote(member('F'), D, 1)))).toEqual([true]);
    core.receive(vote(member('F'), D, 1));
    expect(granted(core.flush())).toEqual([true]);
  });

  it('not with a committed configuration that is not applied, also when told to (M14)', () => {
    const joint = configurationOf([A, B], { outgoing: [A, B, C] });
    const change = {
      index: 1,
      term: 1,
      kind: 'configuration',
      payload: new Uint8Array(1),
      configuration: joint,
    } as const;
    const core = following();
    core.receive({ type: 'append', from: A, to: B, term: 1, prev: NONE, entries: [change], commit: 1, request: 1 });
    core.flush();
    expect(core.raft.commit).toBe(1);
    core.receive({ type: 'timeoutNow', from: A, to: B, term: 1 });
    expect(campaigns(core)).toBe(false);
    core.feed({ type: 'applied', index: 1 });
    expect(campaigns(core)).toBe(true);
  });

  it('not while its disk stalls, and a leader steps down at once (P15)', () => {
    const core = new Core(A, fresh(VOTERS));
    core.elect(B);
    core.feed({ type: 'stalled', stalled: true });
    expect(core.effects[0]).toEqual({ type: 'roleChanged' });
    expect(roleName(core.raft)).toBe('follower');
    expect(campaigns(core)).toBe(false);
    core.feed({ type: 'stalled', stalled: false });
    expect(campaigns(core)).toBe(true);
  });

  it('takes back the configuration of an entry that is cut', () => {
    const change = {
      index: 2,
      term: 1,
      kind: 'configuration',
      payload: new Uint8Array(1),
      configuration: configurationOf([A, C]),
    } as const;
    const core = new Core(B, fresh(VOTERS, { hard: { term: 1, vote: undefined }, entries: [entry(1, 1), change] }));
    expect(campaigns(core)).toBe(false);
    core.receive({
      type: 'append',
      from: C,
      to: B,
      term: 2,
      prev: { index: 1, term: 1 },
      entries: entries(2, 2),
      commit: 0,
      request: 1,
    });
    core.flush();
    expect(campaigns(core)).toBe(true);
  });

  it('a leader tells a pair that it does not list; that one stops until a leader speaks to it (S3)', () => {
    const leader = new Core(A, fresh(VOTERS));
    leader.elect(B);
    const wiped = member('C', 'd4');
    expect(leader.receive(preVote(wiped, A, 9))).toMatchObject([{ type: 'notMember', to: wiped, term: 1 }]);
    expect(leader.receive(vote(wiped, A, 9))).toMatchObject([{ type: 'notMember' }]);
    expect(leader.raft.hard.term).toBe(1);
    const core = following();
    core.receive({ type: 'notMember', from: C, to: B, term: 1 });
    expect(core.effects).toContainEqual({ type: 'notMember', leader: C });
    expect(campaigns(core)).toBe(false);
    core.receive(heartbeat(A, B, 1));
    expect(campaigns(core)).toBe(true);
  });

  it('drops what is meant for another directory', () => {
    const core = following();
    expect(core.receive(vote(C, member('B', 'd0'), 7, NONE, true), heartbeat(C, member('B', 'd0'), 8))).toEqual([]);
    expect(core.raft.hard.term).toBe(1);
  });
});

describe('a leader', () => {
  it('steps down when it has not heard a quorum of voters, learners not counting (E8, M11)', () => {
    const core = new Core(A, fresh(configurationOf([A, B, C], { learners: [D] })));
    core.elect(B);
    core.flush();
    for (let tick = 0; tick < 9; tick++) {
      core.feed(TICK);
      core.receive({ type: 'heartbeatReply', from: D, to: A, term: 1, round: 0, diskLow: false });
    }
    expect(roleName(core.raft)).toBe('leader');
    core.feed(TICK);
    expect(roleName(core.raft)).toBe('follower');
    expect(core.raft.hard).toEqual({ term: 1, vote: A });
  });

  it('stays while one of two others answers', () => {
    const core = new Core(A, fresh(VOTERS));
    core.elect(B);
    for (let tick = 0; tick < 100; tick++) {
      core.feed(TICK);
      if (tick % 9 === 0) core.receive({ type: 'heartbeatReply', from: C, to: A, term: 1, round: 0, diskLow: false });
    }
    expect(roleName(core.raft)).toBe('leader');
  });

  it('of an older term learns of the newer one by every answer', () => {
    const core = new Core(B, fresh(VOTERS, { hard: { term: 4, vote: undefined } }));
    const append = { type: 'append', from: A, to: B, term: 3, prev: NONE, entries: [], commit: 0, request: 1 } as const;
    expect(core.receive(heartbeat(A, B, 3), append)).toMatchObject([
      { type: 'heartbeatReply', term: 4 },
      { type: 'appendReply', term: 4, result: { type: 'conflict' } },
    ]);
    const leader = new Core(A, fresh(VOTERS));
    leader.elect(B);
    leader.receive({ type: 'heartbeatReply', from: B, to: A, term: 4, round: 0, diskLow: false });
    expect([roleName(leader.raft), leader.raft.hard.term]).toEqual(['follower', 4]);
  });

  it('never meets another one in its term', () => {
    const core = new Core(A, fresh(VOTERS));
    core.elect(B);
    expect(() => core.receive(heartbeat(B, A, 1))).toThrow(AssertionFailed);
    expect(() => following().receive(heartbeat(C, B, 1))).toThrow(/C leads term 1, which A leads/);
  });
});

describe('peerDown (S1)', () => {
  const down: Input = { type: 'peerDown', leader: A, term: 1 };

  it('lifts stickiness for pre-votes and votes', () => {
    const core = following();
    core.feed(down);
    expect(granted(core.receive(preVote(C, B, 2)))).toEqual([true]);
    core.receive(vote(C, B, 2));
    expect(granted(core.flush())).toEqual([true]);
  });

  it('of another leader or term does nothing', () => {
    const core = following();
    core.feed({ ...down, leader: C }, { ...down, term: 2 });
    expect(granted(core.receive(preVote(C, B, 2)))).toEqual([false]);
    expect(core.raft.early.dueAt).toBeUndefined();
  });

  it('starts a campaign within a quarter of the least time-out, at different times at different members', () => {
    const delays = Array.from({ length: 40 }, (_, seed) => {
      const core = new Core(B, fresh(VOTERS, { hard: { term: 1, vote: A } }), {
        seed,
        electionMinTicks: 100,
        electionMaxTicks: 200,
      });
      core.receive(heartbeat(A, B, 1));
      core.feed(down);
      let ticks = 0;
      while (roleName(core.raft) === 'follower') {
        core.feed(TICK);
        ticks++;
      }
      return ticks;
    });
    expect(Math.max(...delays)).toBeLessThanOrEqual(25);
    expect(new Set(delays).size).toBeGreaterThan(10);
  });

  it('is cleared by the leader, whose message also ends the pre-campaign', () => {
    const core = following();
    core.feed(down);
    core.receive(heartbeat(A, B, 1));
    expect(granted(core.receive(preVote(C, B, 2)))).toEqual([false]);
    core.tick(5);
    expect(roleName(core.raft)).toBe('follower');
    core.receive(heartbeat(A, B, 1));
    core.feed(down);
    core.tick(4);
    expect(roleName(core.raft)).toBe('candidate');
    core.receive(heartbeat(A, B, 1));
    expect(core.raft.role.type).toBe('follower');
    expect(core.raft.leader).toEqual(A);
  });

  it('does not ask after a real vote was given', () => {
    const core = following();
    core.feed(down);
    core.receive(vote(C, B, 2));
    core.flush();
    core.tick(5);
    expect(roleName(core.raft)).toBe('follower');
  });

  it('campaigns early once for a leader and term, and the normal time-out goes on', () => {
    const core = following();
    const { timeout } = core.raft.timer;
    core.feed(down);
    const before = only(core.tick(4), 'preVote');
    expect(before).toHaveLength(2);
    const lost = { type: 'preVoteReply', to: B, term: 1, granted: false, attempt: before[0]?.attempt ?? 0 } as const;
    core.receive({ ...lost, from: A }, { ...lost, from: C });
    expect(roleName(core.raft)).toBe('follower');
    core.feed(down);
    expect(only(core.tick(timeout - 5), 'preVote')).toEqual([]);
    expect(only(core.tick(1), 'preVote')).toHaveLength(2);
    // Nor much later, as long as it is the same leader's term.
    for (let tick = 0; tick < 300; tick++) {
      core.receive(heartbeat(A, B, 1));
      core.feed(TICK);
    }
    core.receive(heartbeat(A, B, 1));
    core.feed(down);
    core.tick(5);
    expect(roleName(core.raft)).toBe('follower');
  });

  it('campaigns early at most once in ten election time-outs', () => {
    const core = following();
    core.feed(down);
    core.tick(4);
    core.receive(heartbeat(C, B, 2));
    core.flush();
    core.feed({ ...down, leader: C, term: 2 });
    core.tick(5);
    expect(roleName(core.raft)).toBe('follower');
    for (let tick = 0; tick < 200; tick++) {
      core.feed(TICK);
      core.receive(heartbeat(C, B, 2));
    }
    core.feed({ ...down, leader: C, term: 2 });
    core.tick(4);
    expect(roleName(core.raft)).toBe('candidate');
  });
});
