import type { CommandSpec } from '../command.js';
import { CLUSTER_OPTIONS, readEndpoints, withCluster } from '../endpoints.js';
import { EXIT } from '../io.js';
import { print } from '../print.js';
import { endedJson, endedRows } from '../views.js';

/** `fencepost release <domain> <token>`. */
export const spec: CommandSpec = {
  operands: '<domain> <token>',
  options: CLUSTER_OPTIONS,
  async run(input, io) {
    const lease = { domain: input.domain(), token: input.token() };
    const where = readEndpoints(input, io);
    input.finish('release');
    return await withCluster(io, where, async (cluster) => {
      const { answer } = await cluster.call({ type: 'release', lease });
      const { released, ended } = answer;
      const json = {
        released,
        domain: lease.domain,
        token: String(lease.token),
        ended: ended === undefined ? null : endedJson(ended),
      };
      print(io, input.has('json'), json, [
        ['released', released ? { text: 'yes', tone: 'good' } : { text: 'no', tone: 'bad' }],
        ...(ended === undefined
          ? [['domain', lease.domain] as const, ['token', String(lease.token)] as const]
          : endedRows(ended)),
      ]);
      return released ? EXIT.ok : EXIT.no;
    });
  },
};
