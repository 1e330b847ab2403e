import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { Input, Message } from '../../src/raft/types.js';
import { followers } from '../../src/raft/view.js';
import { A, B, C, configurationOf, Core, entries, fresh, member, only, proposal } from './kit.js';

const VOTERS = configurationOf([A, B, C]);

/** A leads term 1; its own no-op is durable everywhere. */
function leader(more = {}): Core {
  const core = new Core(A, fresh(VOTERS), more);
  core.elect(B);
  core.flush();
  core.receive(core.proof(B, 1, 1), core.proof(C, 1, 1));
  core.feed({ type: 'applied', index: 1 });
  return core;
}

function to(messages: readonly Message[], node: string) {
  return only(messages, 'append').filter((message) => message.to.node === node);
}

function heartbeatReply(from = B, round = 0): Message {
  return { type: 'heartbeatReply', from, to: A, term: 1, round, diskLow: false };
}

function conflict(request: number, index: number, term: number, durable = index): Message {
  const result = { type: 'conflict', hint: { index, term } } as const;
  return { type: 'appendReply', from: B, to: A, term: 1, request, result, durable, diskLow: false };
}

function peerOf(core: Core, node = 'B') {
  const { role } = core.raft;
  if (role.type !== 'leader') throw new Error('no leader');
  const peer = [...role.peers.values()].find((one) => one.member.node === node);
  if (peer === undefined) throw new Error(`no peer ${node}`);
  return peer;
}

function uncommitted(core: Core): number {
  return core.raft.role.type === 'leader' ? core.raft.role.uncommittedBytes : -1;
}

describe('replication', () => {
  it('opens a term with a no-op, commits only entries of that term by counting (R4)', () => {
    const held = { hard: { term: 2, vote: undefined }, entries: entries(1, 1, 2) };
    const core = new Core(A, fresh(VOTERS, held));
    core.elect(B);
    expect(core.raft.log.entries.at(-1)).toMatchObject({ index: 3, term: 3, kind: 'noop' });
    core.flush();
    core.receive(core.proof(B, 1, 2), core.proof(C, 1, 2));
    expect(core.raft.commit).toBe(0);
    core.receive(core.proof(B, 2, 3));
    expect(core.raft.commit).toBe(3);
  });

  it('sends ahead within both windows, by count and by bytes, and is back at 0 when idle (R14)', () => {
    const core = leader();
    for (let at = 0; at < 6; at++) core.feed(proposal(10));
    expect(peerOf(core).flow).toMatchObject({ type: 'replicate', bytes: 40 });
    expect(peerOf(core).next).toBe(6);
    const sent = to(core.receive(core.proof(B, peerOf(core).request, 5)), 'B');
    expect(sent.flatMap(({ entries: list }) => list.map(({ index }) => index))).toEqual([6, 7]);
    core.receive(core.proof(B, peerOf(core).request, 7));
    expect(peerOf(core).flow).toMatchObject({ type: 'replicate', inflight: [], bytes: 0 });

    core.feed(...Array.from({ length: 5 }, () => proposal(90)));
    expect(peerOf(core).flow).toMatchObject({ bytes: 270 });
    core.feed({ type: 'unreachable', to: B });
    expect(peerOf(core).flow.type).toBe('probe');
    core.receive(core.proof(B, peerOf(core).request, 12));
    expect(peerOf(core).flow).toMatchObject({ type: 'replicate', inflight: [], bytes: 0 });
    core.flush();
    expect(uncommitted(core)).toBe(0);
  });

  it('charges and releases the same bytes whatever is proposed, refused, proved or lost (R14)', () => {
    const action = fc.oneof(
      fc.record({ type: fc.constant('propose' as const), bytes: fc.nat(400), exempt: fc.boolean() }),
      fc.constantFrom({ type: 'prove' as const }, { type: 'lose' as const }, { type: 'write' as const }),
    );
    fc.assert(
      fc.property(fc.array(action, { maxLength: 60 }), (actions) => {
        const core = leader();
        for (const one of actions) {
          if (one.type === 'propose') {
            const before = uncommitted(core);
            core.feed(proposal(one.bytes, { exempt: one.exempt }));
            const refused = !one.exempt && before > 0 && before + one.bytes > 1_000;
            expect(core.rejection()).toBe(refused ? 'uncommittedLimit' : undefined);
          } else if (one.type === 'prove') core.receive(core.proof(B, peerOf(core).request, peerOf(core).next - 1));
          else if (one.type === 'lose') core.feed({ type: 'unreachable', to: B });
          else core.flush();
          const { flow } = peerOf(core);
          if (flow.type === 'replicate') {
            expect(flow.bytes).toBe(flow.inflight.reduce((sum, { bytes }) => sum + bytes, 0));
          }
        }
        for (let guard = 0; guard < 300 && core.raft.commit < core.raft.log.entries.length; guard++) {
          core.flush();
          core.tick(2);
          core.receive(heartbeatReply());
          core.receive(
            core.proof(
              B,
              peerOf(core).request,
              peerOf(core).flow.type === 'probe' ? peerOf(core).match : peerOf(core).next - 1,
            ),
          );
        }
        core.flush();
        core.receive(core.proof(B, peerOf(core).request, core.raft.log.entries.length));
        expect(core.raft.commit).toBe(core.raft.log.entries.length);
        expect(uncommitted(core)).toBe(0);
        const { flow } = peerOf(core);
        if (flow.type === 'replicate') expect([flow.bytes, flow.inflight.length]).toEqual([0, 0]);
      }),
      { numRuns: 60 },
    );
  });

  it('refuses commands above its limits, never exempt ones (S9)', () => {
    const core = leader({ maxUnappliedEntries: 2 });
    core.feed(proposal(5_000));
    expect(core.has('proposed')).toBe(true);
    core.feed(proposal(1));
    expect(core.rejection()).toBe('uncommittedLimit');
    core.feed(proposal(1, { exempt: true }));
    expect(core.has('proposed')).toBe(true);
    core.flush();
    core.receive(core.proof(B, peerOf(core).request, 3));
    core.feed(proposal(1, { exempt: true }));
    core.flush();
    core.receive(core.proof(B, peerOf(core).request, 4));
    core.feed(proposal(1));
    expect(core.rejection()).toBe('unappliedLimit');
    core.feed({ type: 'applied', index: 4 }, proposal(1));
    expect(core.has('proposed')).toBe(true);
    core.feed(proposal(1, { onlyInTerm: 7 }));
    expect(core.rejection()).toBe('termChanged');
    core.feed({ type: 'stalled', stalled: true }, proposal(1));
    expect(core.rejection()).toBe('notLeader');
  });

  it('probes with one append, again only after a sign of life', () => {
    const core = new Core(A, fresh(VOTERS));
    expect(to(core.elect(B), 'C')).toHaveLength(1);
    core.flush();
    core.feed(proposal());
    expect(
      to(
        core.effects.flatMap((e) => (e.type === 'send' ? [e.message] : [])),
        'C',
      ),
    ).toEqual([]);
    expect(to(core.tick(4), 'C')).toEqual([]);
    expect(to(core.receive(heartbeatReply(C)), 'C')).toMatchObject([
      { prev: { index: 0 }, entries: [{ index: 1 }, { index: 2 }] },
    ]);
  });

  it('finds lost appends by an empty one behind them', () => {
    const core = leader();
    core.feed(proposal());
    core.tick(2);
    const [probe] = to(core.receive(heartbeatReply()), 'B');
    expect(probe).toMatchObject({ prev: { index: 2 }, entries: [] });
    const [again] = to(core.receive(conflict(probe?.request ?? 0, 1, 1)), 'B');
    expect(again).toMatchObject({ prev: { index: 1 }, entries: [{ index: 2 }] });
  });

  it('match never falls, a hint is never a match, and a late conflict is ignored (R8, R16)', () => {
    const core = leader();
    core.feed(proposal());
    const late = peerOf(core).request;
    core.feed(proposal());
    core.receive(core.proof(B, peerOf(core).request, 3));
    core.receive(core.proof(B, late, 2));
    expect(peerOf(core).match).toBe(3);
    core.receive(conflict(late, 1, 1, 3));
    expect([peerOf(core).match, peerOf(core).next]).toEqual([3, 4]);
    core.feed({ type: 'unreachable', to: B });
    const probe = peerOf(core).request;
    core.receive(conflict(late, 1, 1, 3));
    expect(peerOf(core).flow).toMatchObject({ type: 'probe', request: probe, waiting: true });
    core.receive(conflict(probe, 9, 1, 3));
    expect(peerOf(core).match).toBe(3);

    const other = leader();
    other.feed(proposal(), proposal());
    other.receive(conflict(peerOf(other).request, 2, 1));
    expect([peerOf(other).match, peerOf(other).next]).toEqual([1, 3]);
  });

  it('replies of an earlier term or of pairs that are not listed change nothing (R8, F10)', () => {
    const core = leader();
    core.feed(proposal());
    const request = peerOf(core).request;
    core.receive(
      { ...core.proof(B, request, 2), term: 0 },
      core.proof(member('B', 'd9'), request, 2),
      core.proof(member('D'), request, 2),
    );
    core.flush();
    expect(core.raft.commit).toBe(1);
  });

  it('tells followers of a new commit index at once, and heartbeats no more than what is proved', () => {
    const core = leader();
    core.feed(proposal());
    core.flush();
    const sent = core.receive(core.proof(B, peerOf(core).request, 2));
    expect(to(sent, 'B')).toMatchObject([{ prev: { index: 2 }, entries: [], commit: 2 }]);
    const beats = only(core.tick(2), 'heartbeat');
    expect(beats.map(({ to: { node }, commit }) => [node, commit])).toEqual([
      ['B', 2],
      ['C', 1],
    ]);
  });

  it('shows what it knows of followers', () => {
    const core = leader();
    core.receive({ ...heartbeatReply(), diskLow: true } as Message);
    core.tick(9);
    core.receive(heartbeatReply(C));
    core.tick(1);
    expect(followers(core.raft)).toEqual([
      { member: B, match: 1, active: false, diskLow: true, voter: true },
      { member: C, match: 1, active: true, diskLow: false, voter: true },
    ]);
  });
});

describe('a follower that needs what is compacted (R10)', () => {
  /** B has nothing above 1; the log is kept from 6 on. */
  function compacted(): { core: Core; meta: Extract<Input, { type: 'snapshotTaken' }>['meta'] } {
    const core = leader({ maxInflightAppends: 1 });
    for (let at = 0; at < 6; at++) core.feed(proposal());
    core.flush();
    for (let guard = 0; core.raft.commit < 7 && guard < 9; guard++) {
      core.receive(core.proof(C, peerOf(core, 'C').request, peerOf(core, 'C').next - 1));
    }
    const meta = { index: 6, term: 1, configuration: VOTERS, configurationIndex: 0 };
    core.feed({ type: 'applied', index: 7 }, { type: 'snapshotTaken', meta }, { type: 'compact', index: 6 });
    core.feed({ type: 'unreachable', to: B });
    return { core, meta };
  }

  it('gets a snapshot and nothing else until it has answered', () => {
    const { core, meta } = compacted();
    const { request } = peerOf(core);
    expect(core.effects).toContainEqual({ type: 'sendSnapshot', to: B, meta, request });
    core.tick(9);
    expect(to(core.receive(heartbeatReply(), heartbeatReply(C)), 'B')).toEqual([]);
    core.feed({ type: 'snapshotSent', to: B, index: 6, ok: true });
    expect(peerOf(core).flow.type).toBe('snapshot');
    const sent = to(core.receive(core.proof(B, request, 6)), 'B');
    expect(sent).toMatchObject([{ prev: { index: 6 }, entries: [{ index: 7 }] }]);
    expect(peerOf(core).match).toBe(6);
  });

  // 0: it failed before any of the snapshot was read, as when the connect was refused.
  it.each([6, 0])('gets another one when the transfer failed at %i, after a sign of life', (index) => {
    const { core } = compacted();
    core.feed({ type: 'snapshotSent', to: B, index, ok: false });
    expect(core.has('sendSnapshot')).toBe(false);
    core.tick(2);
    core.receive(heartbeatReply());
    expect(core.has('sendSnapshot')).toBe(true);
  });

  it('is asked again when its answer was lost', () => {
    const { core } = compacted();
    core.feed({ type: 'snapshotSent', to: B, index: 6, ok: true });
    for (let tick = 0; tick < 10; tick++) {
      core.tick(1);
      core.receive(heartbeatReply(C));
    }
    expect(to(core.receive(heartbeatReply()), 'B')).toMatchObject([{ prev: { index: 6 } }]);
  });
});

describe('a member whose log got shorter (S7)', () => {
  it('is reported once, by a reply to a request that left after its proof', () => {
    const core = leader();
    for (let at = 0; at < 3; at++) core.feed(proposal());
    const { request } = peerOf(core);
    core.receive(core.proof(B, request, 4));
    // Replies that were under way when the proof came may show less.
    core.receive(core.proof(B, request - 1, 3), core.proof(B, request, 4));
    expect(core.has('logShrank')).toBe(false);
    core.feed({ type: 'unreachable', to: B });
    core.receive(core.proof(B, peerOf(core).request, 4));
    core.feed({ type: 'unreachable', to: B });
    const again = core.receive(conflict(peerOf(core).request, 2, 1));
    expect(core.effects).toContainEqual({ type: 'logShrank', member: B, acknowledged: 4, durable: 2 });
    expect(peerOf(core).match).toBe(4);
    // It is not asked again at once and for ever.
    expect(to(again, 'B')).toEqual([]);
    expect(peerOf(core).flow).toMatchObject({ type: 'probe', waiting: true });
    core.tick(2);
    core.receive(heartbeatReply());
    core.receive(conflict(peerOf(core).request, 2, 1));
    expect(core.has('logShrank')).toBe(false);
  });

  it('does not fall over a commit index that lies beyond its end', () => {
    const core = new Core(B, fresh(VOTERS, { hard: { term: 1, vote: A }, entries: entries(1, 1) }));
    core.receive({ type: 'heartbeat', from: A, to: B, term: 1, commit: 9, round: 0 });
    expect(core.raft.commit).toBe(0);
  });
});
