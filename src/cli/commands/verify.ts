import type { CommandSpec } from '../command.js';
import { CLUSTER_OPTIONS, LOCAL_OPTION, readEndpoints, readFreshness, withCluster } from '../endpoints.js';
import { showLeaseState } from '../lease-state.js';

/** `fencepost verify <domain> <token>`. */
export const spec: CommandSpec = {
  operands: '<domain> <token>',
  options: [LOCAL_OPTION, ...CLUSTER_OPTIONS],
  notes: 'No guard: the answer can be old when you act on it. The comparison at the resource is what protects it.',
  async run(input, io) {
    const lease = { domain: input.domain(), token: input.token() };
    const freshness = readFreshness(input);
    const where = readEndpoints(input, io);
    input.finish('verify');
    return await withCluster(io, where, async (cluster) => {
      const { answer } = await cluster.call({ type: 'verify', lease, freshness });
      return showLeaseState(io, input.has('json'), 'live', lease, answer.outcome);
    });
  },
};
