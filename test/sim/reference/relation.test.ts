import { describe, expect, it } from 'vitest';
import { BigMap } from '../../../src/base/big-map.js';
import type { Domain } from '../../../src/base/ids.js';
import type { Revision } from '../../../src/base/revision.js';
import type { Lease } from '../../../src/lease/types.js';
import type { Member } from '../../../src/raft/types.js';
import type { Effect, Event } from '../../../src/replica/types.js';
import { runChaos } from './chaos.js';
import { core, effects, events, Tampering } from './tampering.js';
import type { Tamper } from './tampering.js';

type Message = Extract<Effect, { readonly type: 'send' }>['message'];

/** A message that leaves is shown as `change` says; undefined leaves it as it is. */
function sent<T extends Message['type']>(
  type: T,
  change: (message: Extract<Message, { readonly type: T }>) => Message | undefined,
): Tamper {
  return effects((effect) => {
    if (effect.type !== 'send' || effect.message.type !== type) return undefined;
    const message = change(effect.message as Extract<Message, { readonly type: T }>);
    return message === undefined ? undefined : [{ type: 'send', message }];
  });
}

/** The relation does not see messages of this kind arrive. */
function unheard(hidden: (message: Message) => boolean): Tamper {
  return events((event) => (event.type === 'message' && hidden(event.message) ? [] : undefined));
}

/** An answer to a client is shown as `change` says. */
function answered(
  change: (effect: Extract<Effect, { readonly type: 'answer' }>) => readonly Effect[] | undefined,
): Tamper {
  return effects((effect) => (effect.type === 'answer' ? change(effect) : undefined));
}

/** As {@link answered}, at a node that leads: no other has answered the same call before. */
function ledAnswer(
  change: (effect: Extract<Effect, { readonly type: 'answer' }>) => readonly Effect[] | undefined,
): Tamper {
  return effects((effect, { context }) =>
    effect.type === 'answer' && context.leadership !== undefined ? change(effect) : undefined,
  );
}

function isForeign(event: Event): boolean {
  return event.type === 'forwarded';
}

/** A read at a leader is shown as if it had come when it was answered. */
function lateReads(): Tamper {
  const held = new Map<string, Event>();
  return (step) => {
    const { process, context } = step;
    const shown: Event[] = [];
    for (const event of step.events) {
      const read = event.type === 'call' && event.call.type === 'get' && event.call.freshness === 'linearizable';
      if (read && context.leadership?.ready !== undefined) held.set(`${process.run} ${event.id}`, event);
      else shown.push(event);
    }
    for (const effect of step.effects) {
      const event = effect.type === 'answer' ? held.get(`${process.run} ${effect.id}`) : undefined;
      if (event !== undefined) shown.push(event);
    }
    return { ...step, events: shown };
  };
}

const STRANGER = { node: 'x', directory: 'y' } as unknown as Member;

const BAD: readonly (readonly [string, RegExp, Tamper])[] = [
  ['a term that nobody is in', /is in term/, core((raft) => ({ hard: { ...raft.hard, term: raft.hard.term + 1 } }))],
  ['a leader without votes', /by the rules it is|nobody sent it/, unheard(({ type }) => type === 'voteReply')],
  ['a campaign without pre-votes', /by the rules it is/, unheard(({ type }) => type === 'preVoteReply')],
  ['a vote that was not asked for', /vote/, unheard(({ type }) => type === 'vote')],
  [
    'a vote for another',
    /says that it votes/,
    sent('voteReply', (reply) => (reply.granted ? { ...reply, to: STRANGER } : undefined)),
  ],
  [
    'a pre-vote that must not be given',
    /would vote/,
    sent('preVoteReply', (reply) => ({ ...reply, granted: true, term: 99 })),
  ],
  [
    'a campaign with another log',
    /does not campaign so/,
    sent('vote', (vote) => ({ ...vote, last: { index: 99, term: 99 } })),
  ],
  [
    'entries from nowhere',
    /log|committed/,
    unheard((message) => message.type === 'append' && message.entries.length > 0),
  ],
  ['a commit beyond what is known', /has committed/, core((raft) => ({ commit: raft.commit + 1 }))],
  ['a commit without proofs', /has committed|the commit index/, unheard(({ type }) => type === 'appendReply')],
  ['more durable than is', /durable/, events((event) => (event.type === 'written' ? [] : undefined))],
  [
    'a write that is left out',
    /has something to save/,
    effects((effect) => (effect.type === 'persist' ? [] : undefined)),
  ],
  [
    'a write of another vote',
    /has term/,
    effects((effect) =>
      effect.type === 'persist' && effect.write.hard.vote !== undefined
        ? [{ ...effect, write: { ...effect.write, hard: { ...effect.write.hard, vote: STRANGER } } }]
        : undefined,
    ),
  ],
  [
    'an acknowledgement of more than was proved',
    /acknowledges/,
    sent('appendReply', (reply) =>
      reply.result.type === 'proved'
        ? { ...reply, result: { type: 'proved', index: reply.result.index + 1 } }
        : undefined,
    ),
  ],
  [
    'an acknowledgement in a term that was left',
    /which it has left/,
    sent('appendReply', (reply) => ({ ...reply, term: reply.term - 1 })),
  ],
  [
    'an append of another log',
    /its own log has/,
    sent('append', (append) => ({ ...append, prev: { ...append.prev, term: 99 } })),
  ],
  [
    'a commit index that is not the own',
    /tells of commit/,
    sent('append', (append) => ({ ...append, commit: append.commit + 1 })),
  ],
  ['a heartbeat beyond the match', /commit index/, sent('heartbeat', (beat) => ({ ...beat, commit: beat.commit + 1 }))],
  [
    'an answer to a round that was not heard',
    /answers round/,
    sent('heartbeatReply', (reply) => ({ ...reply, round: 99 })),
  ],
  ['rounds that nobody answered', /takes round/, unheard(({ type }) => type === 'heartbeatReply')],
  [
    'a follower that leads on',
    /by the rules it is|committed/,
    events((event, { context }) =>
      event.type === 'message' && event.message.type === 'append' && context.raft.role.type === 'follower'
        ? [{ ...event, message: { ...event.message, term: event.message.term + 1 } }]
        : undefined,
    ),
  ],
  ['ticks faster than time', /counts .* ticks/, core((raft) => ({ ticks: raft.ticks + 5 }))],
  [
    'a table that is not what was applied',
    /should be/,
    (step) => {
      const { lease } = step.context;
      const leases = new BigMap<Domain, Lease>();
      for (const [domain, each] of lease.leases) leases.set(domain, { ...each, version: each.version + 1 });
      return leases.size === 0 ? step : { ...step, context: { ...step.context, lease: { ...lease, leases } } };
    },
  ],
  [
    'a table that forgot nothing',
    /has forgotten/,
    (step) => {
      const { lease } = step.context;
      const requests = { ...lease.requests, forgotten: 0 as Revision };
      if (lease.requests.forgotten === 0) return step;
      return { ...step, context: { ...step.context, lease: { ...lease, requests } } };
    },
  ],
  [
    'a cut that lacks a change',
    /a cut lacks|the table has/,
    effects((effect) =>
      effect.type === 'cut' && effect.cut.changes.put.length > 0
        ? [{ ...effect, cut: { ...effect.cut, changes: { ...effect.cut.changes, put: [] } } }]
        : undefined,
    ),
  ],
  [
    'a cut that is ahead',
    /cuts at/,
    effects((effect) =>
      effect.type === 'cut'
        ? [{ ...effect, cut: { ...effect.cut, meta: { ...effect.cut.meta, index: effect.cut.meta.index + 1 } } }]
        : undefined,
    ),
  ],
  ['an answer to nobody', /nobody waits for/, answered((effect) => [{ ...effect, id: 1_000_000 }])],
  [
    'an answer given twice',
    /nobody waits for/,
    (() => {
      let last: Effect | undefined;
      return (step) => {
        const repeated = last;
        last = step.effects.find((effect) => effect.type === 'answer') ?? last;
        return repeated === undefined || step.context.raft.role.type !== 'leader' || repeated === last
          ? step
          : { ...step, effects: [...step.effects, repeated] };
      };
    })(),
  ],
  [
    'a grant of another token',
    /says that .* holds|otherwise than the leader/,
    answered((effect) => {
      if (effect.result.type !== 'answer' || effect.result.answer.type !== 'acquire') return undefined;
      const { outcome } = effect.result.answer;
      if (outcome.type !== 'granted') return undefined;
      const lease = { ...outcome.lease, token: (outcome.lease.token + 1) as Revision };
      const answer = { ...effect.result.answer, outcome: { type: 'granted' as const, lease } };
      return [{ ...effect, result: { ...effect.result, answer } }];
    }),
  ],
  [
    'a lease that is said to be live',
    /lives/,
    ledAnswer((effect) => {
      if (effect.result.type !== 'answer' || effect.result.answer.type !== 'renew') return undefined;
      const results = effect.result.answer.results.map(() => ({ type: 'live', ttlMs: 3_000 }) as const);
      if (effect.result.answer.results.every(({ type }) => type === 'live')) return undefined;
      return [{ ...effect, result: { ...effect.result, answer: { ...effect.result.answer, results } } }];
    }),
  ],
  ['a read that an older round confirms', /confirmed by round/, lateReads()],
  [
    'a call of a client that never came',
    /nobody asked for|nobody waits for|no client/,
    events((event) => (event.type === 'call' ? [] : undefined)),
  ],
  [
    'a call passed on that never came',
    /nobody waits for|nobody asked for/,
    events((event) => (isForeign(event) ? [] : undefined)),
  ],
  [
    'a call passed to a node that does not lead',
    /does not lead/,
    effects((effect, { process }) =>
      effect.type === 'forward' ? [{ ...effect, to: process.member.node }] : undefined,
    ),
  ],
  [
    'a lease that is not left its time after a renewal',
    /early|of silence/,
    events((event, { context: { lease, leadership } }) => {
      if (event.type !== 'tick' || leadership?.ready === undefined || lease.leases.size === 0) return undefined;
      const leases = [...lease.leases.values()].map(({ domain, token }) => ({ domain, token }));
      const more = {
        id: 1,
        term: leadership.term,
        timeoutMs: 1_000,
        holdMs: 0,
        principal: { name: 'x', authenticated: false },
      };
      const from = STRANGER.node;
      // Given up at once: nobody waits for its answer.
      const gone = { type: 'forwardCancelled', from, id: more.id } as const;
      return [{ type: 'forwarded', from, ...more, call: { type: 'renew', leases } }, gone, event];
    }),
  ],
  [
    'a call that is lost with its leadership',
    /keeps call/,
    effects((effect) => (effect.type === 'forwardResult' && effect.result.type === 'notLeader' ? [] : undefined)),
  ],
  [
    'a renewal that is not answered though its leases are over',
    /does not answer renewal/,
    ledAnswer(({ result }) => {
      if (result.type !== 'answer' || result.answer.type !== 'renew') return undefined;
      return result.answer.results.every(({ type }) => type === 'ended') ? [] : undefined;
    }),
  ],
];

describe('the reference relation', () => {
  it.each([1, 2, 3, 4, 5, 6])('accepts what the product does under faults, seed %i', async (seed) => {
    const { error, fault, at, steps, grants } = await runChaos(seed, 8_000);
    expect(error).toBeUndefined();
    expect(fault, `at ${at} ms`).toBeUndefined();
    expect(at).toBeGreaterThanOrEqual(8_000);
    expect(steps).toBeGreaterThan(300);
    expect(grants).toBeGreaterThan(0);
  });

  it.each(BAD)('rejects %s', async (_, text, tamper) => {
    let shown: Tampering | undefined;
    let fault: string | undefined;
    for (let seed = 1; seed <= 6 && fault === undefined; seed++) {
      const result = await runChaos(seed, 10_000, (relation) => (shown = new Tampering(relation, tamper)));
      fault = result.fault?.text;
    }
    expect(shown?.changed, 'steps that were shown otherwise').toBeGreaterThan(0);
    expect(fault).toMatch(text);
  });
});
