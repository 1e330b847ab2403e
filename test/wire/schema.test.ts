/** The types of the program are held to the `.proto` files: a field that one side lacks or types otherwise fails here. */
import { join } from 'node:path';
import protobuf from 'protobufjs';
import { describe, expect, it } from 'vitest';
import { ENTRY_KINDS } from '../../src/wire/entry.js';
import { FAILURE_OUTCOMES, FORWARDED_METHODS } from '../../src/wire/forward.js';
import { enumNumbers } from '../../src/wire/proto.js';
import { END_REASONS, NOT_GRANTED_REASONS, ROLES } from '../../src/wire/public-answer.js';
import { PROTO_DIRECTORY } from '../../src/wire/public-directory.js';
import type * as wire from '../../src/wire/public-types.js';
import { WATCH_METHOD } from '../../src/wire/public-watch.js';
import { METHOD_OF } from '../../src/wire/public.js';
import { FINISH_REASONS } from '../../src/wire/state-bytes.js';

const root = new protobuf.Root();
root.resolvePath = (_origin, target) => join(PROTO_DIRECTORY, target);
root.loadSync(['fencepost/v1/lease.proto', 'fencepost/v1/cluster.proto']).resolveAll();

/** What the file says of each field, in the words that the tables below use. */
function described(message: string): Record<string, string> {
  const type = root.lookupType(`fencepost.v1.${message}`);
  return Object.fromEntries(
    type.fieldsArray.map((field) => {
      const name = field.resolvedType?.name ?? field.type;
      if (field instanceof protobuf.MapField) return [field.name, `map<${field.keyType}, ${name}>`];
      if (field.repeated) return [field.name, `${name}[]`];
      return [field.name, field.partOf === null ? name : `${name}?`];
    }),
  );
}

type Kind<T> = Readonly<Record<keyof T, string>>;

const ref: Kind<wire.WireLeaseRef> = { domain: 'string', token: 'int64' };
const header: Kind<wire.WireHeader> = {
  cluster: 'string',
  incarnation: 'string',
  revision: 'int64',
  nodeId: 'string',
  leaderId: 'string',
};
const lease: Kind<wire.WireLease> = {
  domain: 'string',
  token: 'int64',
  holder: 'string',
  metadata: 'map<string, string>',
  ttlMs: 'uint32',
  grantedAtUnixMs: 'int64',
};
const ended: Kind<wire.WireEnded> = {
  lease: 'LeaseRef',
  reason: 'EndReason',
  by: 'string',
  note: 'string',
  currentToken: 'int64',
};
const acquireRequest: Kind<wire.WireAcquireRequest> = {
  domain: 'string',
  requestId: 'string',
  holder: 'string',
  ttlMs: 'uint32',
  waitMs: 'uint32',
  metadata: 'map<string, string>',
  coolDownMs: 'uint32',
  slots: 'uint32',
  seenRevision: 'int64',
};
const acquireResponse: Kind<wire.WireAcquireResponse> = {
  header: 'ResponseHeader',
  requestId: 'string',
  granted: 'Lease?',
  queued: 'Queued?',
  notGranted: 'NotGranted?',
  ended: 'Ended?',
};
const notGranted: Kind<wire.WireNotGranted> = {
  reason: 'NotGrantedReason',
  current: 'Lease',
  queueLength: 'uint32',
  coolDownLeftMs: 'uint32',
};
const domain: Kind<wire.WireDomain> = {
  name: 'string',
  lease: 'Lease',
  leftMs: 'uint32',
  queueLength: 'uint32',
  waiters: 'Waiter[]',
  coolDownLeftMs: 'uint32',
};
const member: Kind<wire.WireMember> = {
  nodeId: 'string',
  peerAddress: 'string',
  voter: 'bool',
  reachable: 'bool',
  lag: 'int64',
  directoryId: 'string',
};
const status: Kind<wire.WireGetStatusResponse> = {
  cluster: 'string',
  incarnation: 'string',
  nodeId: 'string',
  leaderId: 'string',
  role: 'Role',
  term: 'int64',
  base: 'int64',
  lastRevision: 'int64',
  durableRevision: 'int64',
  committedRevision: 'int64',
  appliedRevision: 'int64',
  members: 'Member[]',
  alarms: 'string[]',
  version: 'string',
  limits: 'Limits',
};
const limits: Kind<wire.WireLimits> = {
  queueLimit: 'uint32',
  leasesPerPrincipal: 'uint32',
  waitersPerPrincipal: 'uint32',
  prefixQuotas: 'PrefixQuota[]',
};
const limitsChange: Kind<wire.WireChangeLimitsRequest> = {
  queueLimit: 'uint32?',
  leasesPerPrincipal: 'uint32?',
  waitersPerPrincipal: 'uint32?',
  prefixQuotas: 'PrefixQuotas',
};

const MESSAGES: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  LeaseRef: ref,
  ResponseHeader: header,
  Lease: lease,
  Ended: ended,
  Live: { ttlMs: 'uint32' } satisfies Kind<wire.WireLive>,
  Queued: { position: 'uint32', current: 'Lease' } satisfies Kind<wire.WireQueued>,
  NotGranted: notGranted,
  Waiter: {
    holder: 'string',
    metadata: 'map<string, string>',
    queuedAtUnixMs: 'int64',
  } satisfies Kind<wire.WireWaiter>,
  Domain: domain,
  Member: member,
  AcquireRequest: acquireRequest,
  AcquireResponse: acquireResponse,
  RenewRequest: { leases: 'LeaseRef[]' } satisfies Kind<wire.WireRenewRequest>,
  RenewResult: { live: 'Live?', ended: 'Ended?' } satisfies Kind<wire.WireRenewResult>,
  RenewResponse: { header: 'ResponseHeader', results: 'RenewResult[]' } satisfies Kind<wire.WireRenewResponse>,
  ReleaseRequest: { lease: 'LeaseRef' } satisfies Kind<wire.WireReleaseRequest>,
  ReleaseResponse: {
    header: 'ResponseHeader',
    released: 'bool',
    ended: 'Ended',
  } satisfies Kind<wire.WireReleaseResponse>,
  WithdrawRequest: { domain: 'string', requestId: 'string' } satisfies Kind<wire.WireWithdrawRequest>,
  WithdrawResponse: { header: 'ResponseHeader' } satisfies Kind<wire.WireWithdrawResponse>,
  VerifyRequest: { lease: 'LeaseRef', freshness: 'Freshness' } satisfies Kind<wire.WireVerifyRequest>,
  VerifyResponse: {
    header: 'ResponseHeader',
    current: 'Live?',
    ended: 'Ended?',
  } satisfies Kind<wire.WireVerifyResponse>,
  GetRequest: { domain: 'string', freshness: 'Freshness' } satisfies Kind<wire.WireGetRequest>,
  GetResponse: { header: 'ResponseHeader', domain: 'Domain' } satisfies Kind<wire.WireGetResponse>,
  ListRequest: {
    prefix: 'string',
    pageSize: 'uint32',
    pageToken: 'string',
    freshness: 'Freshness',
  } satisfies Kind<wire.WireListRequest>,
  ListResponse: {
    header: 'ResponseHeader',
    domains: 'Domain[]',
    nextPageToken: 'string',
  } satisfies Kind<wire.WireListResponse>,
  WatchRequest: { prefix: 'string', startRevision: 'int64' } satisfies Kind<wire.WireWatchRequest>,
  WatchResponse: {
    header: 'ResponseHeader',
    events: 'WatchEvents?',
    progress: 'WatchProgress?',
    compacted: 'WatchCompacted?',
  } satisfies Kind<wire.WireWatchResponse>,
  WatchEvents: { events: 'Event[]' } satisfies Kind<wire.WireWatchEvents>,
  WatchProgress: {},
  WatchCompacted: { oldestRevision: 'int64' } satisfies Kind<wire.WireWatchCompacted>,
  Event: {
    revision: 'int64',
    granted: 'Lease?',
    ended: 'Ended?',
    queueChanged: 'QueueChanged?',
  } satisfies Kind<wire.WireEvent>,
  QueueChanged: { domain: 'string', queueLength: 'uint32' } satisfies Kind<wire.WireQueueChanged>,
  ForceReleaseRequest: {
    domain: 'string',
    token: 'int64',
    note: 'string',
  } satisfies Kind<wire.WireForceReleaseRequest>,
  ForceReleaseResponse: { released: 'bool', currentToken: 'int64' } satisfies Kind<wire.WireForceReleaseResponse>,
  TransferLeadershipRequest: { toNodeId: 'string' } satisfies Kind<wire.WireTransferLeadershipRequest>,
  TransferLeadershipResponse: { leaderId: 'string' } satisfies Kind<wire.WireTransferLeadershipResponse>,
  ChangeLimitsRequest: limitsChange,
  ChangeLimitsResponse: { before: 'Limits', after: 'Limits' } satisfies Kind<wire.WireChangeLimitsResponse>,
  Limits: limits,
  PrefixQuotas: { quotas: 'PrefixQuota[]' } satisfies Kind<wire.WirePrefixQuotas>,
  PrefixQuota: { prefix: 'string', leases: 'uint32', waiters: 'uint32' } satisfies Kind<wire.WirePrefixQuota>,
  GetStatusRequest: {},
  GetStatusResponse: status,
  GetStateHashRequest: {},
  GetStateHashResponse: {
    nodeId: 'string',
    revision: 'int64',
    hash: 'bytes',
  } satisfies Kind<wire.WireGetStateHashResponse>,
};

describe('the public types', () => {
  it.each(Object.entries(MESSAGES))('have the fields of %s', (message, fields) => {
    expect(described(message)).toEqual(fields);
  });

  it('cover every message of every method', () => {
    const needed = new Set<string>();
    const visit = (type: protobuf.Type): void => {
      if (needed.has(type.name)) return;
      needed.add(type.name);
      for (const field of type.fieldsArray) if (field.resolvedType instanceof protobuf.Type) visit(field.resolvedType);
    };
    for (const { path, responseStream } of [...Object.values(METHOD_OF), WATCH_METHOD]) {
      const [, service = '', name = ''] = path.split('/');
      const method = root.lookupService(service).methods[name];
      expect([method?.requestStream, method?.responseStream ?? false]).toEqual([undefined, responseStream]);
      for (const type of [method?.resolvedRequestType, method?.resolvedResponseType]) if (type) visit(type);
    }
    expect([...needed].sort()).toEqual(Object.keys(MESSAGES).sort());
  });

  it('name only values that the enumerations have', () => {
    const values = (name: string): readonly string[] => Object.keys(root.lookupEnum(`fencepost.v1.${name}`).values);
    expect(values('EndReason')).toEqual(expect.arrayContaining(Object.values(END_REASONS)));
    expect(values('NotGrantedReason')).toEqual(expect.arrayContaining(Object.values(NOT_GRANTED_REASONS)));
    expect(values('Role')).toEqual(expect.arrayContaining(Object.values(ROLES)));
    expect(values('Freshness')).toEqual(['FRESHNESS_UNSPECIFIED', 'FRESHNESS_LINEARIZABLE', 'FRESHNESS_LOCAL']);
  });
});

describe('the internal enumerations', () => {
  it.each([
    ['EntryKind', 'ENTRY_KIND', ENTRY_KINDS],
    ['FinishReason', 'FINISH_REASON', FINISH_REASONS],
    ['ForwardedMethod', 'FORWARDED_METHOD', FORWARDED_METHODS],
    ['FailureOutcome', 'FAILURE_OUTCOME', FAILURE_OUTCOMES],
  ] as const)('have the numbers of %s', (name, prefix, names) => {
    const expected = names.map((value, at) => [
      `${prefix}_${value
        .replaceAll('-', '_')
        .replaceAll(/(?=[A-Z])/g, '_')
        .toUpperCase()}`,
      at + 1,
    ]);
    expect(enumNumbers(name)).toEqual(Object.fromEntries([[`${prefix}_UNSPECIFIED`, 0], ...expected]));
  });
});
