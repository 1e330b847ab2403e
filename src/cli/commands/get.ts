import type { CommandSpec } from '../command.js';
import { CLUSTER_OPTIONS, LOCAL_OPTION, readEndpoints, readFreshness, withCluster } from '../endpoints.js';
import { EXIT } from '../io.js';
import { print } from '../print.js';
import { leaseJson, leaseRows, waiterJson } from '../views.js';

/** `fencepost get <domain>`. */
export const spec: CommandSpec = {
  operands: '<domain>',
  options: [LOCAL_OPTION, ...CLUSTER_OPTIONS],
  exitCodes:
    'Exit codes: 0 answered, whether the domain is held or free (--json: lease is null when free); 2 wrong usage;\n3 the cluster did not answer or refused.',
  async run(input, io) {
    const domain = input.domain();
    const freshness = readFreshness(input);
    const where = readEndpoints(input, io);
    input.finish('get');
    return await withCluster(io, where, async (cluster) => {
      const { answer } = await cluster.call({ type: 'get', domain, freshness });
      const { lease, leftMs, queueLength, waiters, coolDownLeftMs } = answer;
      print(
        io,
        input.has('json'),
        {
          domain,
          lease: lease === undefined ? null : leaseJson(lease),
          leftMs: lease === undefined ? null : leftMs,
          queueLength,
          waiters: waiters.map(waiterJson),
          coolDownLeftMs,
        },
        [
          ...(lease === undefined
            ? ([
                ['domain', domain],
                ['held', 'no'],
              ] as const)
            : ([
                ['held', { text: 'yes', tone: 'good' }],
                ...leaseRows(lease),
                ['time left', leftMs === 0 ? 'known to the leader only' : `${Math.round(leftMs)} ms without a renewal`],
              ] as const)),
          ...(coolDownLeftMs === 0 ? [] : ([['closed for', `${coolDownLeftMs} ms more`]] as const)),
          ['waiting', String(queueLength)],
          ...waiters.map(({ holder, queuedAtUnixMs }, at): [string, string] => [
            `waiter ${at + 1}`,
            `${holder}, since ${new Date(queuedAtUnixMs).toISOString()}`,
          ]),
        ],
      );
      return EXIT.ok;
    });
  },
};
