/** The client server over a scripted replica, and a stock gRPC client that retries nothing. */
import { createServer } from 'node:net';
import { Client, credentials, Metadata } from '@grpc/grpc-js';
import type { CallOptions, ClientReadableStream, ClientUnaryCall, MethodDefinition, ServiceError } from '@grpc/grpc-js';
import { service as HEALTH } from 'grpc-health-check';
import type { Answer, Call, EndedView, Header, LeaseView } from '../../src/base/api.js';
import type { DirectoryId, Domain, Incarnation, NodeId, RequestId } from '../../src/base/ids.js';
import type { Revision } from '../../src/base/revision.js';
import type { SharedLimits } from '../../src/base/shared-limits.js';
import type { Event } from '../../src/replica/types.js';
import { CallTable } from '../../src/server/call-table.js';
import { WatchTable } from '../../src/server/watch-table.js';
import { createClientServer } from '../../src/server/client-server.js';
import type { ClientServer } from '../../src/server/client-server.js';
import type { HandlerContext } from '../../src/server/handler.js';
import type { PublicResponse } from '../../src/wire/public-answer.js';
import { pathOf } from '../../src/wire/public-messages.js';
import { requestOf } from '../../src/wire/public-request.js';
import type { CallType } from '../../src/wire/public-types.js';
import { METHOD_OF } from '../../src/wire/public.js';
import { domainAnswer, notGranted } from '../support/answers.js';

export type CallEvent = Extract<Event, { readonly type: 'call' }>;

/** What the replica does with a call; the table answers. */
export type Script = (event: CallEvent, calls: CallTable) => void;

export const DOMAIN = 'orders/eu' as Domain;
export const TOKEN = 1_796_083_200_000_123 as Revision;
export const REQUEST_ID = '123e4567-e89b-42d3-a456-426614174000' as RequestId;
export const HEADER: Header = {
  cluster: 'test',
  incarnation: '00112233445566778899aabbccddeeff' as Incarnation,
  revision: 1_796_083_200_000_200 as Revision,
  node: 'n1' as NodeId,
  leader: 'n2' as NodeId,
};
export const LEASE: LeaseView = {
  domain: DOMAIN,
  token: TOKEN,
  holder: 'worker-1',
  metadata: [
    ['__proto__', 'kept'],
    ['zone', 'eu'],
  ],
  ttlMs: 15_000,
  grantedAtUnixMs: 1_796_083_200_000,
};
export const ENDED: EndedView = {
  lease: { domain: DOMAIN, token: TOKEN },
  reason: 'force_released',
  by: 'addr:127.0.0.1',
  note: 'hängt',
  currentToken: (TOKEN + 5) as Revision,
};

export const SHARED_LIMITS: SharedLimits = {
  queueLimit: 1_000,
  leasesPerPrincipal: 1_000_000_000,
  waitersPerPrincipal: 5,
  prefixQuotas: [{ prefix: 'orders/', leases: 3, waiters: 0 }],
};

/** One call of every kind. */
export const CALLS = {
  acquire: {
    type: 'acquire',
    domain: DOMAIN,
    requestId: REQUEST_ID,
    holder: 'worker-1',
    ttlMs: 9_000,
    waitMs: 60_000,
    metadata: [['zone', 'eu']],
    coolDownMs: 2_000,
    slots: 3,
    seenRevision: TOKEN,
  },
  renew: { type: 'renew', leases: [{ domain: DOMAIN, token: TOKEN }] },
  release: { type: 'release', lease: { domain: DOMAIN, token: TOKEN } },
  withdraw: { type: 'withdraw', domain: DOMAIN, requestId: REQUEST_ID },
  verify: { type: 'verify', lease: { domain: DOMAIN, token: TOKEN }, freshness: 'linearizable' },
  get: { type: 'get', domain: DOMAIN, freshness: 'local' },
  list: { type: 'list', prefix: 'orders/', pageSize: 7, after: 'orders/a', freshness: 'local' },
  getStatus: { type: 'getStatus' },
  transferLeadership: { type: 'transferLeadership', to: 'n3' as NodeId },
  forceRelease: { type: 'forceRelease', domain: DOMAIN, token: TOKEN, note: 'hängt' },
  changeLimits: { type: 'changeLimits', change: { queueLimit: 0, prefixQuotas: [] } },
  getStateHash: { type: 'getStateHash' },
} as const satisfies { readonly [T in CallType]: Extract<Call, { readonly type: T }> };

/** Every outcome of every call. */
export const ANSWERS: readonly Answer[] = [
  { type: 'acquire', requestId: REQUEST_ID, outcome: { type: 'granted', lease: LEASE } },
  { type: 'acquire', requestId: REQUEST_ID, outcome: notGranted('held', LEASE) },
  { type: 'acquire', requestId: REQUEST_ID, outcome: { ...notGranted('queue_full', LEASE), queueLength: 1_000 } },
  { type: 'acquire', requestId: REQUEST_ID, outcome: { ...notGranted('cool_down'), coolDownLeftMs: 1_999 } },
  { type: 'acquire', requestId: REQUEST_ID, outcome: notGranted('wait_over', LEASE) },
  { type: 'acquire', requestId: REQUEST_ID, outcome: notGranted('slots_differ') },
  { type: 'acquire', requestId: REQUEST_ID, outcome: { type: 'queued', position: 7, current: LEASE } },
  { type: 'acquire', requestId: REQUEST_ID, outcome: { type: 'queued', position: 1, current: undefined } },
  { type: 'acquire', requestId: REQUEST_ID, outcome: notGranted('recovering') },
  { type: 'acquire', requestId: REQUEST_ID, outcome: { type: 'ended', ended: ENDED } },
  {
    type: 'renew',
    results: [
      { type: 'live', ttlMs: 9_000 },
      { type: 'ended', ended: { ...ENDED, reason: 'expired', by: '', note: '' } },
    ],
  },
  { type: 'release', released: true, ended: undefined },
  { type: 'release', released: false, ended: { ...ENDED, reason: 'never_granted', by: '', note: '' } },
  { type: 'withdraw' },
  { type: 'verify', outcome: { type: 'live', ttlMs: 9_000 } },
  { type: 'verify', outcome: { type: 'ended', ended: { ...ENDED, reason: 'unspecified', by: '', note: '' } } },
  domainAnswer(DOMAIN, LEASE, 8_999),
  domainAnswer(DOMAIN),
  {
    ...domainAnswer(DOMAIN),
    queueLength: 300,
    coolDownLeftMs: 1_999,
    waiters: [
      { holder: 'worker-2', metadata: [['zone', 'us']], queuedAtUnixMs: 1_796_083_200_001 },
      { holder: 'worker-3', metadata: [], queuedAtUnixMs: 1_796_083_200_002 },
    ],
  },
  { type: 'list', domains: [], next: '' },
  {
    type: 'list',
    domains: [
      { domain: DOMAIN, lease: LEASE, leftMs: 8_999, queueLength: 2, coolDownLeftMs: 0 },
      { domain: 'orders/us#3' as Domain, lease: undefined, leftMs: 0, queueLength: 0, coolDownLeftMs: 1_999 },
    ],
    next: 'orders/us#3',
  },
  { type: 'forceRelease', released: true, currentToken: 0 as Revision },
  { type: 'forceRelease', released: false, currentToken: TOKEN },
  { type: 'transferLeadership', leader: 'n3' as NodeId },
  { type: 'changeLimits', before: SHARED_LIMITS, after: { ...SHARED_LIMITS, queueLimit: 0, prefixQuotas: [] } },
  {
    type: 'getStatus',
    node: 'n1' as NodeId,
    leader: 'n2' as NodeId,
    role: 'follower',
    term: 7,
    base: 1 as Revision,
    lastRevision: 9 as Revision,
    durableRevision: 8 as Revision,
    committedRevision: 7 as Revision,
    appliedRevision: HEADER.revision,
    members: [
      {
        node: 'n2' as NodeId,
        directory: 'ffeeddccbbaa99887766554433221100' as DirectoryId,
        peerAddress: '127.0.0.1:7101',
        voter: true,
        reachable: false,
        lag: 3,
      },
    ],
    alarms: ['the clock is wrong: set it'],
    limits: SHARED_LIMITS,
  },
  { type: 'getStateHash', node: 'n1' as NodeId, revision: TOKEN, hash: '0123456789abcdef' },
];

/** The first answer that fits a call. */
export function answerTo(call: Call): Answer {
  const found = ANSWERS.find(({ type }) => type === call.type);
  if (found === undefined) throw new Error(`no answer to ${call.type}`);
  return found;
}

/** Answers every call in a later turn, as the replica does. */
export const ANSWERING: Script = ({ id, call }, calls) => {
  setImmediate(() => {
    calls.answer(id, HEADER, { type: 'answer', answer: answerTo(call), revision: HEADER.revision });
  });
};

/** Answers nothing. */
export const SILENT: Script = () => undefined;

/** Ends what the tests of one file started; call it in `afterEach`. */
const open: (() => Promise<void> | void)[] = [];
export async function endAll(): Promise<void> {
  for (const end of open.splice(0).reverse()) await end();
}
export function atEnd(end: () => Promise<void> | void): void {
  open.push(end);
}

export interface Served {
  readonly server: ClientServer;
  readonly port: number;
  readonly address: string;
  readonly calls: CallTable;
  readonly watches: WatchTable;
  /** What reached the replica, in order. */
  readonly events: Event[];
  /** What was told to the log. */
  readonly reported: unknown[];
  /** Closes once. */
  readonly close: (graceMs: number) => Promise<void>;
}

export function contextOf(
  calls: CallTable,
  watches = new WatchTable(),
  isWaiting: HandlerContext['isWaiting'] = () => false,
): HandlerContext {
  return {
    node: 'n1' as NodeId,
    cluster: 'test',
    version: '1.2.3',
    limits: { minTtlMs: 3_000, maxTtlMs: 86_400_000, defaultTtlMs: 15_000 },
    calls,
    watches,
    isWaiting,
    waitingFor: () => ['waits for n2', 'waits for n3'],
  };
}

/** A server on a free port. Without a script, of a node that has not formed. */
export async function serve(
  script?: Script,
  bind = '127.0.0.1:0',
  isWaiting?: HandlerContext['isWaiting'],
): Promise<Served> {
  const calls = new CallTable();
  const watches = new WatchTable();
  const events: Event[] = [];
  const reported: unknown[] = [];
  const server = createClientServer(bind, contextOf(calls, watches, isWaiting), (error) => {
    reported.push(error);
  });
  if (script !== undefined) {
    calls.attach((event) => {
      events.push(event);
      if (event.type === 'call') script(event, calls);
    });
    watches.attach((event) => {
      events.push(event);
    });
  }
  const port = await server.listen();
  let closing: Promise<void> | undefined;
  const close = (graceMs: number): Promise<void> => (closing ??= server.close(graceMs));
  atEnd(() => close(0));
  return { server, port, address: `127.0.0.1:${port}`, calls, watches, events, reported, close };
}

/** A client with its own connection. */
export function clientOf(address: string): Client {
  const client = new Client(address, credentials.createInsecure(), {
    'grpc.enable_retries': 0,
    'grpc.enable_http_proxy': 0,
    'grpc.use_local_subchannel_pool': 1,
    'grpc.max_send_message_length': -1,
  });
  atEnd(() => {
    client.close();
  });
  return client;
}

/** How a call of a stock client ended. */
export type Ended<T> = { readonly response: T } | { readonly error: ServiceError };

/** Bytes to one method; `started` gets the call, to cancel it. */
export function sendBytes(
  client: Client,
  path: string,
  bytes: Uint8Array,
  options: CallOptions = {},
  started: (call: ClientUnaryCall) => unknown = () => undefined,
): Promise<Ended<Buffer>> {
  return send(
    client,
    path,
    (message: Buffer) => message,
    (message) => message,
    Buffer.from(bytes),
    options,
    started,
  );
}

/** One checked call. */
export function sendCall(
  client: Client,
  call: Call,
  options: CallOptions = {},
  started: (call: ClientUnaryCall) => unknown = () => undefined,
): Promise<Ended<PublicResponse>> {
  const { requestSerialize, responseDeserialize } = METHOD_OF[call.type];
  return send(client, pathOf(call.type), requestSerialize, responseDeserialize, requestOf(call), options, started);
}

function send<Q, R>(
  client: Client,
  path: string,
  serialize: (value: Q) => Buffer,
  deserialize: (bytes: Buffer) => R,
  request: Q,
  options: CallOptions,
  started: (call: ClientUnaryCall) => unknown,
): Promise<Ended<R>> {
  return new Promise((resolve, reject) => {
    const call = client.makeUnaryRequest(
      path,
      serialize,
      deserialize,
      request,
      new Metadata(),
      options,
      (error, response) => {
        if (error !== null) resolve({ error });
        else if (response !== undefined) resolve({ response });
        else reject(new Error('neither an error nor a response'));
      },
    );
    started(call);
  });
}

/** The status by name, or the code that the check failed with. */
export function checkHealth(client: Client, service: string): Promise<string | number> {
  const { path, requestSerialize, responseDeserialize } = healthMethod('Check');
  return new Promise((resolve) => {
    client.makeUnaryRequest(path, requestSerialize, responseDeserialize, { service }, (error, response) => {
      resolve(error === null ? (response?.status ?? 'nothing') : error.code);
    });
  });
}

export interface HealthWatch {
  readonly stream: ClientReadableStream<{ readonly status: string }>;
  /** Every status, in order. */
  readonly seen: readonly string[];
  readonly ended: () => boolean;
}

export function watchHealth(client: Client, service: string): HealthWatch {
  const { path, requestSerialize, responseDeserialize } = healthMethod('Watch');
  const stream = client.makeServerStreamRequest(path, requestSerialize, responseDeserialize, { service });
  const seen: string[] = [];
  let ended = false;
  stream.on('data', ({ status }: { readonly status: string }) => seen.push(status));
  stream.on('error', () => {
    ended = true;
  });
  return { stream, seen, ended: () => ended };
}

function healthMethod(name: string): MethodDefinition<{ readonly service: string }, { readonly status: string }> {
  const method = HEALTH[name];
  if (method === undefined) throw new Error(`health has no ${name}`);
  return method as unknown as MethodDefinition<{ readonly service: string }, { readonly status: string }>;
}

/** Waits for a condition, a turn of the event loop at a time. */
export async function until(what: string, condition: () => boolean): Promise<void> {
  const end = Date.now() + 20_000;
  while (!condition()) {
    if (Date.now() > end) throw new Error(`not within 20 s: ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
}

/** A port of 127.0.0.1 that somebody listens on. */
export async function takenPort(): Promise<number> {
  const other = createServer();
  await new Promise<void>((resolve) => other.listen(0, '127.0.0.1', resolve));
  atEnd(() => {
    other.close();
  });
  const address = other.address();
  if (address === null || typeof address === 'string') throw new Error('a listening server has a port');
  return address.port;
}
