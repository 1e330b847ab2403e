import { describe, expect, it } from 'vitest';
import type { Message } from '../../src/raft/types.js';
import { A, B, C, configurationOf, Core, entries, entry, fresh, member, only, proposal } from './kit.js';

const VOTERS = configurationOf([A, B, C]);

function appendTo(to = B, more: Partial<Extract<Message, { type: 'append' }>> = {}) {
  return {
    type: 'append',
    from: A,
    to,
    term: 1,
    prev: { index: 0, term: 0 },
    entries: entries(1, 1),
    commit: 0,
    request: 1,
    ...more,
  } as const;
}

const HEARTBEAT = { type: 'heartbeat', from: A, to: B, term: 1, commit: 0, round: 3 } as const;

describe('persist, then speak', () => {
  it('asks for votes only when its own vote is durable (P3)', () => {
    const core = new Core(C, fresh(VOTERS));
    const [asked] = only(core.tickUntil('preVote'), 'preVote');
    expect(core.write).toBeUndefined();
    const reply = {
      type: 'preVoteReply',
      from: B,
      to: C,
      term: 1,
      granted: true,
      attempt: asked?.attempt ?? 0,
    } as const;
    expect(core.receive(reply)).toEqual([]);
    expect(core.write?.hard).toEqual({ term: 1, vote: C });
    expect(only(core.written(), 'vote').map(({ to }) => to.node)).toEqual(['A', 'B']);
  });

  it('grants a vote only when it is durable, and then the same one again at once', () => {
    const core = new Core(B, fresh(VOTERS));
    const vote = {
      type: 'vote',
      from: C,
      to: B,
      term: 1,
      last: { index: 0, term: 0 },
      attempt: 7,
      transfer: false,
    } as const;
    expect(core.receive(vote)).toEqual([]);
    expect(core.write).toMatchObject({ hard: { term: 1, vote: C }, entries: [], cutFrom: undefined });
    expect(core.written()).toMatchObject([{ type: 'voteReply', granted: true, attempt: 7, term: 1 }]);
    expect(core.receive(vote)).toMatchObject([{ type: 'voteReply', granted: true }]);
    expect(core.receive({ ...vote, from: A })).toMatchObject([{ type: 'voteReply', granted: false }]);
  });

  it('keeps its vote through every change of role within the term (P1)', () => {
    const core = new Core(B, fresh(VOTERS));
    const vote = {
      type: 'vote',
      from: A,
      to: B,
      term: 1,
      last: { index: 0, term: 0 },
      attempt: 1,
      transfer: false,
    } as const;
    core.receive(vote);
    core.flush();
    core.receive(HEARTBEAT);
    const [asked] = only(core.tickUntil('preVote'), 'preVote');
    const lost = { type: 'preVoteReply', to: B, term: 1, granted: false, attempt: asked?.attempt ?? 0 } as const;
    core.receive({ ...lost, from: A }, { ...lost, from: C });
    expect(core.raft.role.type).toBe('follower');
    expect(core.receive({ ...vote, from: C })).toMatchObject([{ type: 'voteReply', granted: false }]);
    expect(core.raft.hard).toEqual({ term: 1, vote: A });
  });

  it('acknowledges an append only when it is durable (P6), term and entries in one write (P4)', () => {
    const core = new Core(B, fresh(VOTERS));
    expect(core.receive(appendTo())).toEqual([]);
    expect(core.write).toMatchObject({ seq: 1, hard: { term: 1 }, entries: [{ index: 1 }] });
    expect(core.written()).toMatchObject([{ type: 'appendReply', result: { type: 'proved', index: 1 }, durable: 1 }]);
    // A repetition waits for nothing.
    expect(core.receive(appendTo())).toMatchObject([{ type: 'appendReply', result: { type: 'proved', index: 1 } }]);
    expect(core.write).toBeUndefined();
  });

  it('has one write under way and gathers the rest into the next', () => {
    const core = new Core(B, fresh(VOTERS));
    core.receive(appendTo());
    core.receive(appendTo(B, { prev: { index: 1, term: 1 }, entries: entries(2, 1), request: 2 }));
    core.receive(appendTo(B, { prev: { index: 2, term: 1 }, entries: entries(3, 1), request: 3 }));
    expect(core.has('persist')).toBe(false);
    expect(() => core.feed({ type: 'written', seq: 2 })).toThrow(/write 2 is reported durable/);
    const first = core.written();
    expect(first).toMatchObject([{ request: 1, durable: 1 }]);
    expect(core.write).toMatchObject({ seq: 2, entries: [{ index: 2 }, { index: 3 }], cutFrom: undefined });
    expect(core.written()).toMatchObject([
      { request: 2, durable: 3 },
      { request: 3, durable: 3 },
    ]);
  });

  it('a heartbeat is answered at once in a durable term, with the write in a new one', () => {
    const core = new Core(B, fresh(VOTERS));
    expect(core.receive(HEARTBEAT)).toEqual([]);
    expect(core.written()).toMatchObject([{ type: 'heartbeatReply', term: 1, round: 3 }]);
    core.receive(appendTo());
    expect(core.write).toBeDefined();
    expect(core.receive({ ...HEARTBEAT, round: 4 })).toMatchObject([{ type: 'heartbeatReply', round: 4 }]);
  });

  it('drops what it held when the term is over, and does not count a write for entries that replaced its own (P9, P11)', () => {
    const core = new Core(B, fresh(VOTERS));
    core.receive(appendTo(B, { entries: entries(1, 1, 1) }));
    // The first write is under way when the leader of term 2 replaces entry 2.
    core.receive(appendTo(B, { from: C, term: 2, prev: { index: 1, term: 1 }, entries: entries(2, 2), request: 1 }));
    // And that of term 3 puts the first one's entry back.
    core.receive(appendTo(B, { from: A, term: 3, prev: { index: 1, term: 1 }, entries: entries(2, 1), request: 1 }));
    expect(core.written()).toEqual([]);
    expect(core.raft.persistence.stable).toBe(1);
    expect(core.write).toMatchObject({ cutFrom: 2, hard: { term: 3 }, entries: [{ index: 2, term: 1 }] });
    expect(core.written()).toMatchObject([{ term: 3, result: { type: 'proved', index: 2 }, durable: 2 }]);
  });

  it('no longer counts as durable what was cut (P8)', () => {
    const held = fresh(VOTERS, { hard: { term: 1, vote: undefined }, entries: entries(1, 1, 1, 1, 1) });
    const core = new Core(B, held);
    core.receive(appendTo(B, { from: C, term: 2, prev: { index: 2, term: 1 }, entries: entries(3, 2, 2, 2) }));
    expect(core.raft.persistence.stable).toBe(2);
    expect(core.write).toMatchObject({ cutFrom: 3, entries: [{ index: 3 }, { index: 4 }, { index: 5 }] });
    core.written();
    expect(core.raft.persistence.stable).toBe(5);
  });

  it('cuts once, at the lowest place, when several conflicts come during one write', () => {
    const held = fresh(VOTERS, { hard: { term: 1, vote: undefined }, entries: entries(1, 1, 1, 1, 1) });
    const core = new Core(B, held);
    core.receive({ ...HEARTBEAT, from: C, term: 2 });
    core.receive(appendTo(B, { from: C, term: 2, prev: { index: 2, term: 1 }, entries: entries(3, 2, 2) }));
    core.receive(appendTo(B, { from: A, term: 3, prev: { index: 1, term: 1 }, entries: entries(2, 3) }));
    core.receive(appendTo(B, { from: C, term: 4, prev: { index: 1, term: 1 }, entries: entries(2, 4, 4) }));
    core.written();
    expect(core.write).toMatchObject({
      cutFrom: 2,
      entries: [
        { index: 2, term: 4 },
        { index: 3, term: 4 },
      ],
    });
  });

  it('a single voter commits only what its own disk has (P7)', () => {
    const core = new Core(A, fresh(configurationOf([A])));
    core.elect();
    expect(core.raft.role.type).toBe('leader');
    core.feed(proposal());
    const before = core.raft.commit;
    expect(core.has('committed')).toBe(false);
    expect(core.write).toBeDefined();
    core.flush();
    expect(core.raft.commit).toBe(before + 1);
  });

  it('a leader sends before its own write ends and counts itself only after', () => {
    const core = new Core(A, fresh(VOTERS));
    const sent = only(core.elect(B), 'append');
    expect(sent.map(({ to, entries: list }) => [to.node, list.length])).toEqual([
      ['B', 1],
      ['C', 1],
    ]);
    expect(core.write?.entries).toHaveLength(1);
    core.receive(core.proof(B, 1, 1));
    expect(core.raft.commit).toBe(0);
    core.written();
    expect(core.raft.commit).toBe(1);
  });

  it('a leader commits without its own disk when a majority of others has the entry', () => {
    const core = new Core(A, fresh(VOTERS));
    core.elect(B);
    core.receive(core.proof(B, 1, 1), core.proof(C, 1, 1));
    expect(core.write).toBeDefined();
    expect(core.raft.commit).toBe(1);
  });

  it('refuses a disk whose term is older than its log (P4), and a log that ends before its cut', () => {
    expect(() => new Core(A, fresh(VOTERS, { entries: [entry(1, 1)] }))).toThrow(/term 0 was restored/);
    const snapshot = { index: 5, term: 1, configuration: VOTERS, configurationIndex: 0 };
    const held = { hard: { term: 1, vote: undefined }, entries: entries(1, 1, 1), snapshot };
    expect(() => new Core(A, fresh(VOTERS, held))).toThrow(/not in the restored log/);
  });
});

describe('a staged snapshot', () => {
  const meta = { index: 20, term: 2, configuration: configurationOf([A, B, C]), configurationIndex: 5 };
  const install = { type: 'installSnapshot', from: A, to: B, term: 3, meta, request: 9 } as const;
  const change = configurationOf([A, B, member('D')]);
  const conflicting = {
    index: 3,
    term: 1,
    kind: 'configuration',
    payload: new Uint8Array(1),
    configuration: change,
  } as const;

  it('replaces log and configuration, in one write, and is answered after it (M13)', () => {
    const held = fresh(VOTERS, { hard: { term: 1, vote: undefined }, entries: [...entries(1, 1, 1), conflicting] });
    const core = new Core(B, held);
    expect(core.receive(install)).toEqual([]);
    expect(core.effects).toContainEqual({ type: 'restored', meta });
    expect(core.raft.configurations.map(({ index }) => index)).toEqual([5]);
    expect([core.raft.commit, core.raft.applied]).toEqual([20, 20]);
    expect(core.write).toMatchObject({ install: meta, cutFrom: undefined, entries: [], hard: { term: 3 } });
    core.tick(50);
    expect(core.raft.role.type).toBe('follower');
    expect(core.written()).toMatchObject([{ request: 9, result: { type: 'proved', index: 20 }, durable: 20 }]);
    core.tickUntil('preVote');
  });

  it('takes entries behind it into the same write', () => {
    const core = new Core(B, fresh(VOTERS));
    core.receive({ ...HEARTBEAT, term: 3 });
    core.receive(install, appendTo(B, { term: 3, prev: { index: 20, term: 2 }, entries: entries(21, 3), request: 10 }));
    expect(core.has('persist')).toBe(false);
    core.written();
    expect(core.write).toMatchObject({ install: meta, entries: [{ index: 21 }] });
    expect(core.written()).toMatchObject([{ request: 9 }, { request: 10, durable: 21 }]);
  });

  it('is refused when the log covers it, and cuts nothing (S1)', () => {
    const terms = Array.from({ length: 25 }, (_, at) => (at < 10 ? 1 : 2));
    const core = new Core(B, fresh(VOTERS, { hard: { term: 3, vote: undefined }, entries: entries(1, ...terms) }));
    const [reply] = core.receive(install);
    expect(reply).toMatchObject({ result: { type: 'proved', index: 20 } });
    expect(core.effects).toContainEqual({ type: 'snapshotRefused', meta });
    expect(core.raft.log.entries).toHaveLength(25);
    expect(core.raft.commit).toBe(20);
    const older = { ...meta, index: 10, term: 1 };
    expect(core.receive({ ...install, meta: older })).toMatchObject([{ result: { type: 'proved', index: 20 } }]);
    expect(core.raft.commit).toBe(20);
  });

  it('of a leader whose term is over is refused and tells it the term', () => {
    const core = new Core(B, fresh(VOTERS, { hard: { term: 4, vote: undefined } }));
    expect(core.receive(install)).toMatchObject([{ type: 'appendReply', term: 4, result: { type: 'conflict' } }]);
    expect(core.has('snapshotRefused')).toBe(true);
  });
});
