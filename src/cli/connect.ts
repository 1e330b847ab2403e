import type { Call } from '../base/api.js';
import { Timeline } from '../client/clock.js';
import { openGrpcChannel } from '../client/grpc-channel.js';
import { systemSurroundings } from '../client/surroundings.js';
import { type OpenCall, Transport } from '../client/transport.js';
import type { Answered, Cluster } from './cluster.js';

/** Opens a real way to a cluster. Connects at the first call, so it does not fail when no node is there. */
export function connect(endpoints: readonly string[], timeoutMs: number): Cluster {
  const surroundings = systemSurroundings();
  const transport = new Transport(endpoints, {
    timeline: new Timeline(surroundings.clocks),
    timers: surroundings.timers,
    random: () => surroundings.random(),
    open: openGrpcChannel,
  });
  return {
    endpoints,
    call: (call) => answered(transport.call(call, timeoutMs)),
    ask: (endpoint, call) => answered(transport.once(call, timeoutMs, endpoint)),
    close: () => {
      transport.close();
    },
  };
}

async function answered<C extends Call>(open: OpenCall<C>): Promise<Answered<C>> {
  const outcome = await open.result;
  if (outcome.type === 'failed') throw outcome.error;
  return { answer: outcome.answer, header: outcome.header };
}
