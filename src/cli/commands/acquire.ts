import { randomUUID } from 'node:crypto';
import { hostname, userInfo } from 'node:os';
import type { AcquireAnswer, NotGrantedReason } from '../../base/api.js';
import { MAX_SLOTS } from '../../base/domain.js';
import type { Domain, RequestId } from '../../base/ids.js';
import { DEFAULT_TTL_MS, MAX_COOL_DOWN_MS, MAX_HOLDER_BYTES, MAX_TTL_MS, MAX_WAIT_MS } from '../../base/limits.js';
import { type Revision, ZERO_REVISION } from '../../base/revision.js';
import { FencepostError, retold } from '../../client/errors.js';
import type { Cluster } from '../cluster.js';
import type { CommandSpec } from '../command.js';
import { CLUSTER_OPTIONS, readEndpoints, withCluster } from '../endpoints.js';
import { printFailure } from '../failure.js';
import type { Input } from '../input.js';
import { EXIT, type Io } from '../io.js';
import { print } from '../print.js';
import { endedJson, endedRows, leaseJson, leaseRows } from '../views.js';

const WHY: Readonly<Record<NotGrantedReason, string>> = {
  held: 'the domain is held by the lease below; it ends when it is released or not renewed in time',
  wait_over: 'the domain was held for as long as --wait-ms says',
  queue_full: 'as many as may wait for the domain do so already',
  cool_down: 'the domain is closed for a while, because its last lease expired',
  slots_differ: 'the name is in use with another number of slots, and that never changes; take another name',
  recovering: 'the cluster holds grants back after a restore; repeat later',
};

const OVER = 'This request was granted or withdrawn before, and that is over. Take a new request id.';
const LEFT_QUEUE =
  'The request has left the queue: nobody called for it any more, or its wait was over. Take a new request id.';

/** What stands for the TTL that the cluster is configured with. */
const CLUSTERS_DEFAULT = 0;

/** `fencepost acquire <domain>`. */
export const spec: CommandSpec = {
  operands: '<domain>',
  options: [
    {
      flag: 'ttl-ms',
      value: 'MS',
      about: `how long the lease lives without a renewal (default: the cluster's, ${DEFAULT_TTL_MS} unless configured)`,
    },
    { flag: 'wait-ms', value: 'MS', about: 'how long to wait in the queue while another holds the domain (default 0)' },
    {
      flag: 'slots',
      value: 'N',
      about: 'any one of N slots of this name; the first acquire fixes N (default 1: exclusive)',
    },
    {
      flag: 'cool-down-ms',
      value: 'MS',
      about: 'how long the domain stays closed if the lease expires, for resources that compare no tokens (default 0)',
    },
    { flag: 'holder', value: 'NAME', about: 'shown to operators (default user@host)' },
    { flag: 'meta', value: 'KEY=VALUE', about: 'shown to operators; may be repeated', many: true },
    { flag: 'request-id', value: 'UUID', about: 'repeat an earlier attempt, with the same words (default: a new one)' },
    { flag: 'seen-revision', value: 'REV', about: 'with --request-id: the revision that the earlier attempt named' },
    ...CLUSTER_OPTIONS,
  ],
  notes:
    'Nobody renews this lease for you: renew it with `fencepost renew` before its TTL is over, counted from before this\ncommand ran, and give its token to every resource that you change.',
  async run(input, io) {
    const asked = read(input);
    const where = readEndpoints(input, io);
    input.finish('acquire');
    return await withCluster(io, where, async (cluster) => {
      const requestId = asked.requestId ?? (randomUUID() as string as RequestId);
      const seenRevision =
        asked.requestId === undefined ? await greatestRevision(cluster, asked.domain) : asked.seenRevision;
      const json = input.has('json');
      try {
        for (;;) {
          const { answer } = await cluster.call({ ...asked, type: 'acquire', requestId, seenRevision });
          // One call is held for a bounded time; the place in the queue is kept by calling again.
          if (answer.outcome.type !== 'queued') return show(requestId, answer.outcome, seenRevision, json, io);
        }
      } catch (error) {
        if (!(error instanceof FencepostError)) throw error;
        return printFailure(io, json, 'acquire', error, {
          json: { requestId, seenRevision: String(seenRevision) },
          ifUnknown: `It may have been granted. To learn that, repeat with --request-id ${requestId} --seen-revision ${seenRevision}`,
        });
      }
    });
  },
};

function read(input: Input) {
  const domain = input.domain();
  const holder = input.text('holder') ?? `${userInfo().username}@${hostname()}`;
  const bytes = Buffer.byteLength(holder);
  if (bytes === 0 || bytes > MAX_HOLDER_BYTES)
    input.fault(`--holder must have 1 to ${MAX_HOLDER_BYTES} bytes; this one has ${bytes}`);
  const metadata = new Map<string, string>();
  for (const text of input.texts('meta')) {
    const at = text.indexOf('=');
    if (at < 1) input.fault(`--meta must be KEY=VALUE, not ${JSON.stringify(text)}`);
    else if (metadata.has(text.slice(0, at))) input.fault(`--meta names ${text.slice(0, at)} twice`);
    else metadata.set(text.slice(0, at), text.slice(at + 1));
  }
  const requestId = input.requestId('request-id');
  const seenRevision = input.revision('seen-revision');
  if (seenRevision !== undefined && requestId === undefined) input.fault('--seen-revision goes with --request-id');
  return {
    domain,
    holder,
    metadata: [...metadata].sort(([a], [b]) => (a < b ? -1 : 1)),
    ttlMs: input.integer('ttl-ms', 1, MAX_TTL_MS) ?? CLUSTERS_DEFAULT,
    waitMs: input.integer('wait-ms', 0, MAX_WAIT_MS) ?? 0,
    slots: input.integer('slots', 1, MAX_SLOTS) ?? 1,
    coolDownMs: input.integer('cool-down-ms', 0, MAX_COOL_DOWN_MS) ?? 0,
    requestId,
    seenRevision: seenRevision ?? ZERO_REVISION,
  };
}

/** A new id is sent with a revision that was seen before it was made, so that a late copy of it is refused. */
async function greatestRevision(cluster: Cluster, domain: Domain): Promise<Revision> {
  try {
    const { header } = await cluster.call({ type: 'get', domain, freshness: 'local' });
    return header?.revision ?? ZERO_REVISION;
  } catch (error) {
    // Whatever became of this call, nothing was asked for yet.
    throw error instanceof FencepostError ? retold(error, error.message, { outcome: 'not-done', cause: error }) : error;
  }
}

type Outcome = Exclude<AcquireAnswer['outcome'], { readonly type: 'queued' }>;

function show(requestId: RequestId, outcome: Outcome, seen: Revision, json: boolean, io: Io): number {
  const seenRevision = String(seen);
  switch (outcome.type) {
    case 'granted':
      print(io, json, { outcome: 'granted', requestId, seenRevision, lease: leaseJson(outcome.lease) }, [
        ['granted', { text: 'yes', tone: 'good' }],
        ...leaseRows(outcome.lease),
        ['request id', requestId],
        ['seen revision', seenRevision],
      ]);
      return EXIT.ok;
    case 'notGranted': {
      const { current, reason, queueLength, coolDownLeftMs } = outcome;
      print(
        io,
        json,
        {
          outcome: 'notGranted',
          requestId,
          seenRevision,
          reason,
          queueLength,
          coolDownLeftMs,
          current: current === undefined ? null : leaseJson(current),
        },
        [
          ['granted', { text: 'no', tone: 'bad' }],
          ['why', WHY[reason]],
          ['waiting', String(queueLength)],
          ...(coolDownLeftMs === 0 ? [] : [['closed for', `${coolDownLeftMs} ms more`] as const]),
          ...(current === undefined ? [] : leaseRows(current)),
        ],
      );
      return EXIT.no;
    }
    case 'ended':
      print(io, json, { outcome: 'ended', requestId, seenRevision, ended: endedJson(outcome.ended) }, [
        ['granted', { text: 'no', tone: 'bad' }],
        ['why', outcome.ended.reason === 'left_queue' ? LEFT_QUEUE : OVER],
        ...endedRows(outcome.ended),
      ]);
      return EXIT.no;
  }
}
