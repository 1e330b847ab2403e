import type { CommandSpec } from '../command.js';
import { CLUSTER_OPTIONS, readEndpoints, withCluster } from '../endpoints.js';
import { EXIT } from '../io.js';
import { print } from '../print.js';

/** `fencepost transfer-leadership [node]`. */
export const spec: CommandSpec = {
  operands: '[node]',
  options: CLUSTER_OPTIONS,
  notes: 'Without a node, the voter that is furthest ahead becomes leader. No lease is shortened.',
  async run(input, io) {
    const to = input.optionalNode();
    const where = readEndpoints(input, io);
    input.finish('transfer-leadership');
    return await withCluster(io, where, async (cluster) => {
      const { answer } = await cluster.call({ type: 'transferLeadership', to });
      print(io, input.has('json'), { leader: answer.leader }, [['leader', { text: answer.leader, tone: 'good' }]]);
      return EXIT.ok;
    });
  },
};
