/** Random calls and answers of the public API, all within the limits. */
import fc from 'fast-check';
import type { Answer, Call, EndedView, Header, LeaseState, LeaseView, MemberView } from '../../src/base/api.js';
import { MAX_SLOTS } from '../../src/base/domain.js';
import type { Domain } from '../../src/base/ids.js';
import { ERRORS } from '../../src/base/errors.js';
import type { Failure, Reason } from '../../src/base/errors.js';
import { MAX_COOL_DOWN_MS, MAX_PAGE_SIZE, MAX_QUOTA, MAX_WAIT_MS } from '../../src/base/limits.js';
import type { SharedLimits } from '../../src/base/shared-limits.js';
import { utf8Length } from '../../src/base/utf8.js';
import * as any from './arbitraries.js';

export const LIMITS = { minTtlMs: 3_000, maxTtlMs: 86_400_000, defaultTtlMs: 15_000 };

const ref = fc.record({ domain: any.leasedDomain, token: any.token });
const freshness = fc.constantFrom('linearizable' as const, 'local' as const);
const note = any.name.filter((text) => utf8Length(text) <= 500);

const acquireOf = (more: {
  readonly domain: fc.Arbitrary<Domain>;
  readonly slots: fc.Arbitrary<number>;
}): fc.Arbitrary<Call> =>
  fc.record({
    type: fc.constant('acquire' as const),
    requestId: any.requestId,
    holder: any.name,
    ttlMs: fc.integer({ min: LIMITS.minTtlMs, max: LIMITS.maxTtlMs }),
    waitMs: fc.integer({ min: 0, max: MAX_WAIT_MS }),
    metadata: any.metadata,
    coolDownMs: fc.integer({ min: 0, max: MAX_COOL_DOWN_MS }),
    seenRevision: any.revision,
    ...more,
  });

const quota = fc.integer({ min: 0, max: MAX_QUOTA });
const prefixQuotas = fc.uniqueArray(
  fc.record({ prefix: fc.oneof(fc.constant(''), any.domain), leases: quota, waiters: quota }),
  { selector: ({ prefix }) => prefix, maxLength: 3 },
);
const sharedLimits: fc.Arbitrary<SharedLimits> = fc.record({
  queueLimit: any.uint32,
  leasesPerPrincipal: any.uint32,
  waitersPerPrincipal: any.uint32,
  prefixQuotas: fc.array(fc.record({ prefix: any.text, leases: any.uint32, waiters: any.uint32 }), { maxLength: 3 }),
});

export const call: fc.Arbitrary<Call> = fc.oneof(
  acquireOf({ domain: any.domain, slots: fc.constant(1) }),
  acquireOf({ domain: any.countingName, slots: fc.integer({ min: 2, max: MAX_SLOTS }) }),
  fc.record({ type: fc.constant('renew' as const), leases: fc.array(ref, { minLength: 1, maxLength: 5 }) }),
  fc.record({ type: fc.constant('release' as const), lease: ref }),
  fc.record({ type: fc.constant('withdraw' as const), domain: any.domain, requestId: any.requestId }),
  fc.record({ type: fc.constant('verify' as const), lease: ref, freshness }),
  fc.record({ type: fc.constant('get' as const), domain: any.leasedDomain, freshness }),
  fc.record({
    type: fc.constant('list' as const),
    prefix: any.text,
    pageSize: fc.integer({ min: 1, max: MAX_PAGE_SIZE }),
    after: fc.oneof(fc.constant(''), any.leasedDomain),
    freshness,
  }),
  fc.record({ type: fc.constant('forceRelease' as const), domain: any.leasedDomain, token: any.token, note }),
  fc.record({ type: fc.constant('transferLeadership' as const), to: fc.option(any.nodeId, { nil: undefined }) }),
  fc
    .record(
      {
        queueLimit: quota,
        leasesPerPrincipal: fc.integer({ min: 1, max: MAX_QUOTA }),
        waitersPerPrincipal: quota,
        prefixQuotas,
      },
      { requiredKeys: [] },
    )
    .filter((change) => Object.keys(change).length > 0)
    .map((change) => ({ type: 'changeLimits' as const, change })),
  fc.record({ type: fc.constantFrom('getStatus' as const, 'getStateHash' as const) }),
);

export const leaseView: fc.Arbitrary<LeaseView> = fc.record({
  domain: any.leasedDomain,
  token: any.token,
  holder: any.name,
  metadata: any.metadata,
  ttlMs: any.ttlMs,
  grantedAtUnixMs: any.count,
});
export const ended: fc.Arbitrary<EndedView> = fc.record({
  lease: fc.option(ref, { nil: undefined }),
  reason: fc.constantFrom(
    'unspecified',
    'expired',
    'released',
    'withdrawn',
    'force_released',
    'earlier_history',
    'never_granted',
    'left_queue',
  ),
  by: any.text,
  note: any.text,
  currentToken: any.revision,
});
const endedOutcome = fc.record({ type: fc.constant('ended' as const), ended });
const state: fc.Arbitrary<LeaseState> = fc.oneof(
  fc.record({ type: fc.constant('live' as const), ttlMs: any.uint32 }),
  endedOutcome,
);
const maybeLease = fc.option(leaseView, { nil: undefined });
const domainView = {
  domain: any.leasedDomain,
  lease: maybeLease,
  leftMs: any.uint32,
  queueLength: any.uint32,
  coolDownLeftMs: any.uint32,
};
const memberView: fc.Arbitrary<MemberView> = fc.record({
  node: any.nodeId,
  directory: fc.option(any.directoryId, { nil: undefined }),
  peerAddress: any.text,
  voter: fc.boolean(),
  reachable: fc.boolean(),
  lag: any.count,
});
const maybeNode = fc.option(any.nodeId, { nil: undefined });

export const forwardableAnswer: fc.Arbitrary<Answer> = fc.oneof(
  fc.record({
    type: fc.constant('acquire' as const),
    requestId: any.requestId,
    outcome: fc.oneof(
      fc.record({ type: fc.constant('granted' as const), lease: leaseView }),
      fc.record({
        type: fc.constant('notGranted' as const),
        reason: fc.constantFrom(
          'held' as const,
          'wait_over' as const,
          'queue_full' as const,
          'cool_down' as const,
          'slots_differ' as const,
          'recovering' as const,
        ),
        current: maybeLease,
        queueLength: any.uint32,
        coolDownLeftMs: any.uint32,
      }),
      fc.record({ type: fc.constant('queued' as const), position: any.uint32, current: maybeLease }),
      endedOutcome,
    ),
  }),
  fc.record({ type: fc.constant('renew' as const), results: fc.array(state, { maxLength: 5 }) }),
  fc.record({
    type: fc.constant('release' as const),
    released: fc.boolean(),
    ended: fc.option(ended, { nil: undefined }),
  }),
  fc.record({ type: fc.constant('withdraw' as const) }),
  fc.record({ type: fc.constant('verify' as const), outcome: state }),
  fc.record({
    type: fc.constant('get' as const),
    ...domainView,
    waiters: fc.array(fc.record({ holder: any.name, metadata: any.metadata, queuedAtUnixMs: any.count }), {
      maxLength: 3,
    }),
  }),
  fc.record({
    type: fc.constant('list' as const),
    domains: fc.array(fc.record(domainView), { maxLength: 3 }),
    next: fc.oneof(fc.constant(''), any.leasedDomain),
  }),
  fc.record({ type: fc.constant('forceRelease' as const), released: fc.boolean(), currentToken: any.revision }),
  fc.record({ type: fc.constant('transferLeadership' as const), leader: any.nodeId }),
  fc.record({ type: fc.constant('changeLimits' as const), before: sharedLimits, after: sharedLimits }),
);
export const localAnswer: fc.Arbitrary<Answer> = fc.oneof(
  fc.record({
    type: fc.constant('getStatus' as const),
    node: any.nodeId,
    leader: maybeNode,
    role: fc.constantFrom('follower' as const, 'candidate' as const, 'leader' as const, 'stopped' as const),
    term: any.count,
    base: any.revision,
    lastRevision: any.revision,
    durableRevision: any.revision,
    committedRevision: any.revision,
    appliedRevision: any.revision,
    members: fc.array(memberView, { maxLength: 3 }),
    alarms: fc.array(any.text, { maxLength: 3 }),
    limits: fc.option(sharedLimits, { nil: undefined }),
  }),
  fc.record({
    type: fc.constant('getStateHash' as const),
    node: any.nodeId,
    revision: any.revision,
    hash: any.digest,
  }),
);
export const answer = fc.oneof(forwardableAnswer, localAnswer);
export const header: fc.Arbitrary<Header> = fc.record({
  cluster: any.name,
  incarnation: fc.oneof(fc.constant('' as const), any.incarnation),
  revision: any.revision,
  node: any.nodeId,
  leader: maybeNode,
});

export const failure: fc.Arbitrary<Failure> = fc
  .record({
    reason: fc.constantFrom(...(Object.keys(ERRORS) as Reason[])),
    message: any.text,
    outcome: fc.constantFrom('not-done' as const, 'unknown' as const),
    revision: fc.option(any.count, { nil: undefined }),
  })
  .map(({ revision, ...rest }) => (revision === undefined ? rest : { ...rest, revision }));
