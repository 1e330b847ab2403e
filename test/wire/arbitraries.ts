/** Random values of every type that has a wire form. */
import fc from 'fast-check';
import type { Metadata } from '../../src/base/api.js';
import type { BootId, DirectoryId, Domain, Incarnation, NodeId, RequestId } from '../../src/base/ids.js';
import type { Revision } from '../../src/base/revision.js';
import type { Command } from '../../src/lease/commands.js';
import type {
  ChangeableLimits,
  CoolDown,
  CountingName,
  FinishedRequest,
  Lease,
  StateLimits,
  StateRecord,
  StateSummary,
  Waiter,
} from '../../src/lease/types.js';
import type { Configuration, Entry, Member, Message, Position, SnapshotMeta } from '../../src/raft/types.js';
import type { FormRequest, FormResponse, Genesis, Hello, SnapshotChunk } from '../../src/replica/types.js';
import { encodeConfiguration } from '../../src/wire/configuration.js';
import type { CutMeta } from '../../src/wire/disk-records.js';

/** 0 to 2^53 − 1, both ends often. */
export const count = fc.oneof(
  fc.maxSafeNat(),
  fc.nat(1_000),
  fc.constantFrom(0, 1, 2 ** 31, 2 ** 32 - 1, 2 ** 32, 2 ** 53 - 1),
);
export const positiveCount = count.map((n) => Math.max(1, n));
export const revision = count as fc.Arbitrary<Revision>;
export const token = positiveCount as fc.Arbitrary<Revision>;
export const uint32 = fc.oneof(fc.integer({ min: 0, max: 2 ** 32 - 1 }), fc.constantFrom(0, 1, 2 ** 31, 2 ** 32 - 1));
export const ttlMs = uint32.map((n) => Math.max(1, n));

const chosen = (alphabet: string, minLength: number, maxLength: number): fc.Arbitrary<string> =>
  fc.string({ unit: fc.constantFrom(...Array.from(alphabet)), minLength, maxLength });
const LETTERS = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789';
const hex128 = chosen('0123456789abcdef', 32, 32);
const segment = chosen(`${LETTERS}._~:@+=-`, 1, 20);

export const nodeId = chosen(`${LETTERS}._-`, 1, 63) as fc.Arbitrary<NodeId>;
export const directoryId = hex128 as fc.Arbitrary<DirectoryId>;
export const incarnation = hex128 as fc.Arbitrary<Incarnation>;
export const bootId = hex128 as fc.Arbitrary<BootId>;
export const requestId = fc.uuid() as fc.Arbitrary<RequestId>;
export const domain = fc
  .oneof(fc.array(segment, { minLength: 1, maxLength: 4 }), fc.constant(['x'.repeat(255)]))
  .map((segments) => segments.join('/') as Domain);

/** A number of slots. */
const slots = fc.integer({ min: 1, max: 1_000 });
/** A counting name: short enough for the numbers of its slots. */
export const countingName = fc
  .oneof(fc.array(segment, { minLength: 1, maxLength: 4 }), fc.constant(['x'.repeat(247)]))
  .map((segments) => segments.join('/') as Domain);
/** A domain, or a slot of a counting name. */
export const leasedDomain = fc.oneof(
  { arbitrary: domain, weight: 2 },
  {
    arbitrary: fc.tuple(countingName, fc.nat(999)).map(([of, number]) => `${of}#${number}` as Domain),
    weight: 1,
  },
);

/** Any Unicode text that the API lets in: well formed and without U+FFFD. */
export const text = fc.string({ unit: 'binary', maxLength: 30 }).map((value) => value.replaceAll('\ufffd', '?'));
export const name = text.filter((value) => value !== '');
export const digest = chosen('0123456789abcdef', 16, 16);
export const bytes = fc.uint8Array({ maxLength: 40 });

export const metadata: fc.Arbitrary<Metadata> = fc
  .uniqueArray(fc.tuple(text, text), { selector: ([key]) => key, maxLength: 4 })
  .map((pairs) => pairs.sort(([left], [right]) => (left < right ? -1 : 1)));

export const member: fc.Arbitrary<Member> = fc.record({ node: nodeId, directory: directoryId });
export const members = fc.array(member, { maxLength: 4 });
export const configuration: fc.Arbitrary<Configuration> = fc.record({
  voters: members,
  outgoing: members,
  learners: members,
});
export const position: fc.Arbitrary<Position> = fc.record({ index: count, term: count });
export const meta: fc.Arbitrary<SnapshotMeta> = fc.record({
  index: count,
  term: count,
  configuration,
  configurationIndex: count,
});

const entryBody: fc.Arbitrary<Omit<Entry, 'index'>> = fc.oneof(
  fc.record({ term: count, kind: fc.constant('noop' as const), payload: fc.constant(new Uint8Array(0)) }),
  fc.record({ term: count, kind: fc.constant('command' as const), payload: bytes }),
  fc.record({ term: count, configuration }).map(({ term, configuration: value }) => ({
    term,
    kind: 'configuration' as const,
    payload: Uint8Array.from(encodeConfiguration(value)),
    configuration: value,
  })),
);
/** Consecutive from `first`. */
export const entriesFrom = (first: number): fc.Arbitrary<readonly Entry[]> =>
  fc.array(entryBody, { maxLength: 5 }).map((bodies) => bodies.map((body, at) => ({ index: first + at, ...body })));

const quotas = fc.array(fc.record({ prefix: text, leases: uint32, waiters: uint32 }), { maxLength: 3 });
const limits: fc.Arbitrary<StateLimits> = fc.record({
  finishedRequests: uint32,
  queue: uint32,
  leasesPerPrincipal: uint32,
  waitersPerPrincipal: uint32,
  countingNames: uint32,
  prefixes: quotas,
});
const limitsChange: fc.Arbitrary<Partial<ChangeableLimits>> = fc.record(
  { queue: uint32, leasesPerPrincipal: uint32, waitersPerPrincipal: uint32, prefixes: quotas },
  { requiredKeys: [] },
);

const key = { domain: leasedDomain, token };
const passing = { detached: fc.array(requestId, { maxLength: 3 }) };
const freeing = { ...passing, atUnixMs: count };
/** What an acquire and a waiter have in common. */
const asks = {
  domain,
  requestId,
  holder: name,
  ttlMs,
  metadata,
  coolDownMs: uint32,
  slots,
  owner: text,
  principal: name,
};
export const command: fc.Arbitrary<Command> = fc.oneof(
  fc.record({
    type: fc.constant('acquire' as const),
    ...asks,
    waitMs: uint32,
    seenRevision: revision,
    atUnixMs: count,
  }),
  fc.record({ type: fc.constant('withdraw' as const), domain, requestId, owner: text, ...freeing }),
  fc.record({ type: fc.constant('release' as const), ...key, owner: text, ...freeing }),
  fc.record({ type: fc.constant('forceRelease' as const), ...key, note: text, by: text, ...freeing }),
  fc.record({
    type: fc.constant('expire' as const),
    term: count,
    leases: fc.array(fc.record({ ...key, version: count, ...passing }), { maxLength: 4 }),
    atUnixMs: count,
  }),
  fc.record({
    type: fc.constant('endWait' as const),
    term: count,
    waits: fc.array(fc.record({ requestId, ...passing }), { maxLength: 4 }),
    atUnixMs: count,
  }),
  fc.record({
    type: fc.constant('endCoolDown' as const),
    term: count,
    domains: fc.array(fc.record({ domain: leasedDomain, since: token, ...passing }), { maxLength: 4 }),
    atUnixMs: count,
  }),
  fc.record({
    type: fc.constant('checkpoint' as const),
    leases: fc.array(fc.record({ ...key, leftMs: count }), { maxLength: 4 }),
  }),
  fc.record({ type: fc.constant('void' as const), leases: fc.array(fc.record(key), { maxLength: 4 }) }),
  fc.record({ type: fc.constant('endHold' as const), term: count }),
  fc.record({ type: fc.constant('limits' as const), change: limitsChange, by: text }),
);

export const lease: fc.Arbitrary<Lease> = fc.record({
  domain: leasedDomain,
  token,
  requestId,
  holder: name,
  metadata,
  ttlMs,
  coolDownMs: uint32,
  grantedAtUnixMs: count,
  owner: text,
  principal: name,
  version: count,
  checkpointLeftMs: fc.option(count, { nil: undefined }),
});
export const waiter: fc.Arbitrary<Waiter> = fc.record({
  ...asks,
  queuedAt: token,
  waitMs: ttlMs,
  queuedAtUnixMs: count,
});
export const coolDown: fc.Arbitrary<CoolDown> = fc.record({ domain: leasedDomain, since: token, ms: ttlMs });
export const counting: fc.Arbitrary<CountingName> = fc.record({ name: countingName, slots, principal: name });
export const finishedRequest: fc.Arbitrary<FinishedRequest> = fc.record({
  requestId,
  domain: leasedDomain,
  finishedAt: token,
  token: fc.option(token, { nil: undefined }),
  reason: fc.constantFrom('expired', 'released', 'withdrawn', 'force_released', 'earlier_history', 'left_queue'),
  by: text,
  note: text,
  owner: text,
  asked: fc.option(fc.record({ ttlMs, holder: name, coolDownMs: uint32, slots }), { nil: undefined }),
});
export const stateRecord: fc.Arbitrary<StateRecord> = fc.oneof(
  lease.map((value) => ({ type: 'domain' as const, domain: value.domain, lease: value })),
  waiter.map((value) => ({ type: 'waiter' as const, queuedAt: value.queuedAt, waiter: value })),
  coolDown.map((value) => ({ type: 'coolDown' as const, domain: value.domain, coolDown: value })),
  counting.map((value) => ({ type: 'counting' as const, domain: value.name, counting: value })),
  fc.array(finishedRequest, { minLength: 1, maxLength: 4 }).map((requests) => {
    const sorted = requests.sort((left, right) => left.finishedAt - right.finishedAt);
    const last = sorted.at(-1);
    if (last === undefined) throw new Error('at least one request was asked for');
    return { type: 'finished' as const, lastRevision: last.finishedAt, requests: sorted };
  }),
);
export const summary: fc.Arbitrary<StateSummary> = fc.record({ forgotten: revision, holding: fc.boolean(), limits });

export const genesis: fc.Arbitrary<Genesis> = fc.record({
  incarnation,
  cluster: name,
  history: fc.record({ base: token, start: count }),
  startTerm: count,
  holdMs: count,
  limits,
  members: fc
    .uniqueArray(member, { selector: ({ node }) => node, minLength: 1, maxLength: 5 })
    .map((list) => list.sort((left, right) => (left.node < right.node ? -1 : 1))),
  stateDigest: fc.oneof(fc.constant(''), digest),
});
export const hello: fc.Arbitrary<Hello> = fc.record({
  cluster: name,
  incarnation: fc.oneof(fc.constant('' as const), incarnation),
  node: nodeId,
  directory: directoryId,
  boot: bootId,
  format: ttlMs,
});
const formParts = {
  hello,
  initialMembersDigest: digest,
  unixUs: count,
  stateDigest: fc.oneof(fc.constant(''), digest),
  genesis: fc.option(genesis, { nil: undefined }),
};
export const formRequest: fc.Arbitrary<FormRequest> = fc.record(formParts);
export const formResponse: fc.Arbitrary<FormResponse> = fc.record({ ...formParts, forming: fc.boolean() });

const envelope = { from: member, to: member, term: count };
export const message: fc.Arbitrary<Message> = fc.oneof(
  fc.record({ type: fc.constant('preVote' as const), ...envelope, last: position, attempt: count }),
  fc.record({
    type: fc.constantFrom('preVoteReply' as const, 'voteReply' as const),
    ...envelope,
    granted: fc.boolean(),
    attempt: count,
  }),
  fc.record({
    type: fc.constant('vote' as const),
    ...envelope,
    last: position,
    attempt: count,
    transfer: fc.boolean(),
  }),
  fc.record({ index: fc.nat(2 ** 50), term: count }).chain((prev) =>
    fc.record({
      type: fc.constant('append' as const),
      ...envelope,
      prev: fc.constant(prev),
      entries: entriesFrom(prev.index + 1),
      commit: count,
      request: count,
    }),
  ),
  fc.record({
    type: fc.constant('appendReply' as const),
    ...envelope,
    request: count,
    result: fc.oneof(
      fc.record({ type: fc.constant('proved' as const), index: count }),
      fc.record({ type: fc.constant('conflict' as const), hint: position }),
    ),
    durable: count,
    diskLow: fc.boolean(),
  }),
  fc.record({ type: fc.constant('heartbeat' as const), ...envelope, commit: count, round: count }),
  fc.record({ type: fc.constant('heartbeatReply' as const), ...envelope, round: count, diskLow: fc.boolean() }),
  fc.record({ type: fc.constant('installSnapshot' as const), ...envelope, meta, request: count }),
  fc.record({ type: fc.constantFrom('timeoutNow' as const, 'notMember' as const), ...envelope }),
);

export const chunk: fc.Arbitrary<SnapshotChunk> = fc.record({
  term: count,
  request: count,
  sequence: count,
  meta,
  summary,
  records: fc.array(stateRecord, { maxLength: 4 }),
  total: fc.option(fc.record({ count, digest }), { nil: undefined }),
});

export const cutMeta: fc.Arbitrary<CutMeta> = fc.record({
  prefix: count,
  snapshot: meta,
  incarnation,
  history: fc.record({ base: revision, start: count }),
  anchor: fc.record({ index: count, term: count, chain: uint32 }),
  count,
  sum: fc.record({ high: uint32, low: uint32 }),
  summary,
});

/** One for each change of a value. */
export const seeds = fc.array(fc.integer({ min: 0, max: 2 ** 32 - 1 }), { minLength: 20, maxLength: 20 });
