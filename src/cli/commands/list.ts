import type { DomainView } from '../../base/api.js';
import { MAX_PAGE_SIZE } from '../../base/limits.js';
import type { CommandSpec } from '../command.js';
import { CLUSTER_OPTIONS, LOCAL_OPTION, readEndpoints, readFreshness, withCluster } from '../endpoints.js';
import { EXIT } from '../io.js';
import { type Cell, table } from '../table.js';
import { leaseJson } from '../views.js';

/** `fencepost list [prefix]`. */
export const spec: CommandSpec = {
  operands: '[prefix]',
  options: [LOCAL_OPTION, ...CLUSTER_OPTIONS],
  notes: 'Lists domains and slots that are held or closed, and names that are waited for. --json: one line for each.',
  exitCodes:
    'Exit codes: 0 answered, also when there is nothing; 2 wrong usage; 3 the cluster did not answer or refused.',
  async run(input, io) {
    const prefix = input.optionalOperand() ?? '';
    const freshness = readFreshness(input);
    const where = readEndpoints(input, io);
    input.finish('list');
    return await withCluster(io, where, async (cluster) => {
      const domains: DomainView[] = [];
      let after = '';
      do {
        const { answer } = await cluster.call({ type: 'list', prefix, pageSize: MAX_PAGE_SIZE, after, freshness });
        if (input.has('json')) for (const domain of answer.domains) io.out(JSON.stringify(asJson(domain)));
        else domains.push(...answer.domains);
        after = answer.next;
      } while (after !== '');
      if (!input.has('json')) io.out(asTable(domains, io.colour));
      return EXIT.ok;
    });
  },
};

function asJson({ domain, lease, leftMs, queueLength, coolDownLeftMs }: DomainView): unknown {
  return { domain, lease: lease === undefined ? null : leaseJson(lease), leftMs, queueLength, coolDownLeftMs };
}

function asTable(domains: readonly DomainView[], colour: boolean): string {
  return table(
    [
      { title: 'domain' },
      { title: 'token' },
      { title: 'holder' },
      { title: 'since' },
      { title: 'ttl ms', numeric: true },
      { title: 'left ms', numeric: true },
      { title: 'waiting', numeric: true },
    ],
    domains.map(({ domain, lease, leftMs, queueLength, coolDownLeftMs }): readonly Cell[] => [
      domain,
      lease === undefined ? '' : String(lease.token),
      lease?.holder ?? (coolDownLeftMs > 0 ? { text: `closed for ${coolDownLeftMs} ms`, tone: 'dim' } : ''),
      lease === undefined ? '' : new Date(lease.grantedAtUnixMs).toISOString(),
      lease === undefined ? '' : String(lease.ttlMs),
      leftMs === 0 ? '' : String(leftMs),
      String(queueLength),
    ]),
    colour,
  );
}
