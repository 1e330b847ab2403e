import { randomUUID } from 'node:crypto';
import type { AcquireAnswer } from '../../base/api.js';
import type { Domain, RequestId } from '../../base/ids.js';
import { DEFAULT_TTL_MS } from '../../base/limits.js';
import { type Revision, ZERO_REVISION } from '../../base/revision.js';
import { FencepostError, retold } from '../../client/errors.js';
import { ACQUIRE_OPTIONS, readAsked } from '../acquire-options.js';
import type { Cluster } from '../cluster.js';
import type { CommandSpec } from '../command.js';
import { CLUSTER_OPTIONS, readEndpoints, withCluster } from '../endpoints.js';
import { printFailure } from '../failure.js';
import type { Input } from '../input.js';
import { EXIT, type Io } from '../io.js';
import { print } from '../print.js';
import { endedJson, endedRows, leaseJson, leaseRows, NOT_GRANTED } from '../views.js';

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
    ...ACQUIRE_OPTIONS,
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
  const { ttlMs = CLUSTERS_DEFAULT, ...asked } = readAsked(input);
  const requestId = input.requestId('request-id');
  const seenRevision = input.revision('seen-revision');
  if (seenRevision !== undefined && requestId === undefined) input.fault('--seen-revision goes with --request-id');
  return { ...asked, ttlMs, requestId, seenRevision: seenRevision ?? ZERO_REVISION };
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
          ['why', NOT_GRANTED[reason]],
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
