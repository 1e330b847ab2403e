import type { CommandSpec } from '../command.js';
import { CLUSTER_OPTIONS, readEndpoints, withCluster } from '../endpoints.js';
import { showLeaseState } from '../lease-state.js';

/** `fencepost renew <domain> <token>`. */
export const spec: CommandSpec = {
  operands: '<domain> <token>',
  options: CLUSTER_OPTIONS,
  async run(input, io) {
    const lease = { domain: input.domain(), token: input.token() };
    const where = readEndpoints(input, io);
    input.finish('renew');
    return await withCluster(io, where, async (cluster) => {
      const { answer } = await cluster.call({ type: 'renew', leases: [lease] });
      const [result] = answer.results;
      if (result === undefined) throw new TypeError('the answer to Renew has no result');
      return showLeaseState(io, input.has('json'), 'renewed', lease, result);
    });
  },
};
