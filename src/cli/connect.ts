import type { Call } from '../base/api.js';
import { Timeline } from '../client/clock.js';
import { openGrpcChannel } from '../client/grpc-channel.js';
import { openGrpcWatch } from '../client/grpc-watch.js';
import { observe } from '../client/observe.js';
import { observeSettings } from '../client/options.js';
import { systemSurroundings } from '../client/surroundings.js';
import { type OpenCall, Transport } from '../client/transport.js';
import type { Answered, Cluster } from './cluster.js';

/** Opens a real way to a cluster. Connects at the first call, so it does not fail when no node is there. */
export function connect(endpoints: readonly string[], timeoutMs: number): Cluster {
  const surroundings = systemSurroundings();
  const timeline = new Timeline(surroundings.clocks);
  const closed = new AbortController();
  const transport = new Transport(endpoints, {
    timeline,
    timers: surroundings.timers,
    random: () => surroundings.random(),
    open: openGrpcChannel,
  });
  return {
    endpoints,
    call: (call) => answered(transport.call(call, timeoutMs)),
    ask: (endpoint, call) => answered(transport.once(call, timeoutMs, endpoint)),
    observe: (prefix, from) =>
      observe(
        { endpoints, open: openGrpcWatch, timeline, surroundings, giveUpMs: timeoutMs, closed: closed.signal },
        observeSettings(prefix, from === undefined ? {} : { from }),
      ),
    close: () => {
      closed.abort();
      transport.close();
    },
  };
}

async function answered<C extends Call>(open: OpenCall<C>): Promise<Answered<C>> {
  const outcome = await open.result;
  if (outcome.type === 'failed') throw outcome.error;
  return { answer: outcome.answer, header: outcome.header };
}
