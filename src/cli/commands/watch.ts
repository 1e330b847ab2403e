import { MAX_DOMAIN_BYTES } from '../../base/domain.js';
import { CompactedError, FencepostError } from '../../client/errors.js';
import type { Observation } from '../../client/observe.js';
import type { DomainChange } from '../../client/views.js';
import type { CommandSpec } from '../command.js';
import { CLUSTER_OPTIONS, readEndpoints, withCluster } from '../endpoints.js';
import { printFailure } from '../failure.js';
import { EXIT, type Io } from '../io.js';
import { toned } from '../table.js';
import { REASONS } from '../views.js';

/** `fencepost watch [prefix]`. */
export const spec: CommandSpec = {
  operands: '[prefix]',
  options: [
    { flag: 'from', value: 'REV', about: 'the first revision of interest (default: from now on)' },
    ...CLUSTER_OPTIONS.filter(({ flag }) => flag !== 'timeout-ms' && flag !== 'json'),
    { flag: 'timeout-ms', value: 'MS', about: 'give up when no node serves for so long (default 10000)' },
    { flag: 'json', about: 'one JSON document a line: each change, and "progress" up to where all is known' },
  ],
  notes:
    'Shows grants, ends and the lengths of queues of the domains that begin with the prefix, each once and in order, until it\nis interrupted. Goes on at another node by itself when one fails. To go on later: --from the last revision + 1.',
  exitCodes:
    'Exit codes: 1 changes were missed for good: the start lies before what is kept; 2 wrong usage; 3 the cluster did not\nanswer or refused. It has no other end.',
  async run(input, io) {
    const prefix = input.optionalOperand() ?? '';
    const bytes = Buffer.byteLength(prefix);
    if (bytes > MAX_DOMAIN_BYTES) input.fault(`the prefix has ${bytes} bytes; at most ${MAX_DOMAIN_BYTES} are allowed`);
    const from = input.revision('from');
    const where = readEndpoints(input, io);
    input.finish('watch');
    const json = input.has('json');
    return await withCluster(io, where, async (cluster) => {
      let known: bigint | undefined;
      try {
        for await (const observation of cluster.observe(prefix, from === undefined ? undefined : BigInt(from))) {
          if (known === undefined && !json)
            io.err(`watching; all before revision ${observation.revision + 1n} is known`);
          known = observation.revision;
          show(io, json, observation);
        }
      } catch (error) {
        if (!(error instanceof FencepostError)) throw error;
        const revision = known === undefined ? null : String(known);
        const code = printFailure(io, json, 'watch', error, { json: { revision }, ifUnknown: '' });
        return error instanceof CompactedError ? EXIT.no : code;
      }
      return EXIT.ok;
    });
  },
};

function show(io: Io, json: boolean, { revision, changes }: Observation): void {
  for (const change of changes) io.out(json ? JSON.stringify(asJson(change)) : asLine(change, io.colour));
  if (json) io.out(JSON.stringify({ type: 'progress', revision: String(revision) }));
}

function asJson(change: DomainChange): Readonly<Record<string, unknown>> {
  const { type } = change;
  const revision = String(change.revision);
  switch (change.type) {
    case 'granted': {
      const { domain, token, holder, metadata, ttlMs, grantedAt } = change.lease;
      const grantedAtUnixMs = grantedAt.getTime();
      return { type, revision, domain, token: String(token), holder, metadata, ttlMs, grantedAtUnixMs };
    }
    case 'ended': {
      const { domain, token, ended } = change;
      const { reason, by, note, currentToken } = ended;
      const now = currentToken === 0n ? null : String(currentToken);
      return { type, revision, domain, token: String(token), reason, by, note, currentToken: now };
    }
    case 'queueChanged': {
      const { domain, queueLength } = change;
      return { type, revision, domain, queueLength };
    }
  }
}

function asLine(change: DomainChange, colour: boolean): string {
  const at = toned(String(change.revision), 'dim', colour);
  switch (change.type) {
    case 'granted': {
      const { domain, holder, ttlMs } = change.lease;
      return `${at}  ${toned('granted', 'good', colour)}  ${toned(domain, 'strong', colour)}  to ${holder} for ${ttlMs} ms`;
    }
    case 'ended': {
      const { domain, token, ended } = change;
      const by = ended.by === '' ? '' : ` (${ended.by}: ${ended.note})`;
      const next = ended.currentToken === 0n ? '' : `; handed over`;
      return `${at}  ${toned('ended', 'bad', colour)}    ${toned(domain, 'strong', colour)}  token ${token} ${REASONS[ended.reason]}${by}${next}`;
    }
    case 'queueChanged': {
      const { domain, queueLength } = change;
      return `${at}  queue    ${toned(domain, 'strong', colour)}  ${queueLength} waiting`;
    }
  }
}
