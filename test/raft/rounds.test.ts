import { describe, expect, it } from 'vitest';
import type { Effect, Message } from '../../src/raft/types.js';
import { roleName } from '../../src/raft/view.js';
import { A, B, C, configurationOf, Core, fresh, member, only, proposal } from './kit.js';

const VOTERS = configurationOf([A, B, C]);

function leader(configuration = VOTERS): Core {
  const core = new Core(A, fresh(configuration));
  core.elect(B);
  core.flush();
  core.receive(core.proof(B, 1, 1));
  return core;
}

function answer(from: typeof A, round: number, term = 1): Message {
  return { type: 'heartbeatReply', from, to: A, term, round, diskLow: false };
}

function confirmed(core: Core): number[] {
  return core.effects.flatMap((effect) => (effect.type === 'confirmed' ? [effect.round] : []));
}

const round = (number: number): Effect => ({ type: 'pendingRound', round: number });

describe('confirmation rounds', () => {
  it('start with the batch, and one serves all that wait', () => {
    const core = leader();
    const sent = core.feed({ type: 'confirm' }, { type: 'confirm' });
    expect(core.effects.slice(0, 2)).toEqual([round(1), round(1)]);
    expect(only(sent, 'heartbeat').map(({ to, round: of }) => [to.node, of])).toEqual([
      ['B', 1],
      ['C', 1],
    ]);
    expect(confirmed(core)).toEqual([]);
    core.receive(answer(C, 1));
    expect(confirmed(core)).toEqual([1]);
    core.receive(answer(B, 1));
    expect(confirmed(core)).toEqual([]);
  });

  it('a request never joins the round under way: old answers confirm nothing new (RD2, RD3)', () => {
    const core = leader();
    core.feed({ type: 'confirm' });
    core.feed({ type: 'confirm' });
    expect(core.effects).toEqual([round(2)]);
    const sent = core.receive(answer(B, 1));
    expect(confirmed(core)).toEqual([1]);
    expect(only(sent, 'heartbeat').map(({ round: of }) => of)).toEqual([2, 2]);
    core.receive(answer(C, 1), answer(B, 1));
    expect(confirmed(core)).toEqual([]);
    core.receive(answer(C, 2));
    expect(confirmed(core)).toEqual([2]);
  });

  it('are repeated with every heartbeat until they are answered (RD5)', () => {
    const core = leader();
    core.feed({ type: 'confirm' });
    expect(only(core.tick(4), 'heartbeat').map(({ round: of }) => of)).toEqual([1, 1, 1, 1]);
  });

  it('count voters of every half, and nobody else (M11)', () => {
    const D = member('D');
    const E = member('E');
    const core = leader(configurationOf([A, B, C], { learners: [D, E] }));
    core.feed({ type: 'confirm' });
    core.receive(answer(D, 1), answer(E, 1), answer(member('B', 'd9'), 1));
    expect(confirmed(core)).toEqual([]);
    const joint = new Core(A, fresh(configurationOf([A, D, E], { outgoing: [A, B, C] })));
    joint.elect(B, D);
    joint.flush();
    joint.receive(joint.proof(B, 1, 1), joint.proof(D, 1, 1));
    joint.feed({ type: 'confirm' });
    joint.receive(answer(D, 1), answer(E, 1));
    expect(confirmed(joint)).toEqual([]);
    joint.receive(answer(B, 1));
    expect(confirmed(joint)).toEqual([1]);
  });

  it('a single voter confirms in the same batch', () => {
    const core = new Core(A, fresh(configurationOf([A])));
    core.elect();
    core.flush();
    core.feed({ type: 'confirm' });
    expect(core.effects).toEqual([round(1), { type: 'confirmed', round: 1 }]);
  });

  it('need a committed entry of the own term (RD1) and a leader', () => {
    const core = new Core(A, fresh(VOTERS));
    core.feed({ type: 'confirm' });
    expect(core.rejection()).toBe('notLeader');
    core.elect(B);
    core.feed({ type: 'confirm' });
    expect(core.rejection()).toBe('ownTermNotCommitted');
    core.flush();
    core.receive(core.proof(B, 1, 1));
    core.feed({ type: 'confirm' });
    expect(core.effects).toContainEqual(round(1));
  });

  it('end with the leader: a later term counts no answer of an earlier one', () => {
    const core = leader();
    core.feed({ type: 'confirm' });
    core.feed({ type: 'stalled', stalled: true }, { type: 'stalled', stalled: false });
    core.receive(answer(B, 1), answer(C, 1));
    expect(confirmed(core)).toEqual([]);
    core.elect(B);
    core.flush();
    core.receive(core.proof(B, 1, 2));
    core.feed({ type: 'confirm' });
    core.receive(answer(B, 1), answer(C, 1));
    expect(confirmed(core)).toEqual([]);
    core.receive(answer(B, 1, 2));
    expect(confirmed(core)).toEqual([1]);
  });
});

describe('hand-over (E9)', () => {
  it('waits until the target holds everything, then tells it to campaign', () => {
    const core = leader();
    core.feed(proposal());
    expect(only(core.feed({ type: 'transfer', to: B }), 'timeoutNow')).toEqual([]);
    core.feed(proposal());
    expect(core.rejection()).toBe('transferring');
    expect(core.receive(core.proof(B, 2, 2))).toContainEqual({ type: 'timeoutNow', from: A, to: B, term: 1 });
    core.receive({ type: 'vote', from: B, to: A, term: 2, last: { index: 2, term: 1 }, attempt: 1, transfer: true });
    expect(roleName(core.raft)).toBe('follower');
    expect(core.flush()).toMatchObject([{ type: 'voteReply', granted: true }]);
  });

  it('is given up after a least election time-out, and the leader serves again', () => {
    const core = leader();
    core.feed({ type: 'transfer', to: C });
    for (let tick = 0; tick < 10; tick++) {
      expect(core.has('transferAborted')).toBe(false);
      core.receive(answer(B, 0));
      core.tick(1);
    }
    expect(core.has('transferAborted')).toBe(true);
    core.feed(proposal());
    expect(core.has('proposed')).toBe(true);
  });

  it('chooses the voter furthest ahead, refuses others', () => {
    const core = leader(configurationOf([A, B, C], { learners: [member('D')] }));
    expect(core.feed({ type: 'transfer', to: undefined })).toMatchObject([{ type: 'timeoutNow', to: B }]);
    core.feed({ type: 'transfer', to: C });
    expect(core.rejection()).toBe('transferring');
    const other = leader(configurationOf([A, B, C], { learners: [member('D')] }));
    for (const to of [member('D'), member('F'), member('B', 'd9')]) {
      other.feed({ type: 'transfer', to });
      expect(other.rejection()).toBe('notVoter');
    }
    other.feed({ type: 'transfer', to: A });
    expect(other.effects).toEqual([{ type: 'transferAborted' }]);
  });

  it('the target campaigns without pre-vote; a late order of an old term does nothing', () => {
    const core = new Core(B, fresh(VOTERS, { hard: { term: 1, vote: A } }));
    core.receive({ type: 'heartbeat', from: A, to: B, term: 1, commit: 0, round: 0 });
    core.receive({ type: 'timeoutNow', from: C, to: B, term: 1 }, { type: 'timeoutNow', from: A, to: B, term: 0 });
    expect(roleName(core.raft)).toBe('follower');
    core.receive({ type: 'timeoutNow', from: A, to: B, term: 1 });
    expect(only(core.flush(), 'vote').map(({ transfer, term }) => [transfer, term])).toEqual([
      [true, 2],
      [true, 2],
    ]);
  });
});
