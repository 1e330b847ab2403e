/** The gRPC server for clients: leases, cluster, health, reflection. */
import { Server, ServerCredentials } from '@grpc/grpc-js';
import { HealthImplementation } from 'grpc-health-check';
import { PIPELINE_METHOD } from '../wire/public-pipeline.js';
import { CLUSTER_SERVICE, LEASE_SERVICE } from '../wire/public.js';
import { createHandler } from './handler.js';
import type { HandlerContext } from './handler.js';
import { Pipelines } from './pipeline.js';
import { addReflection } from './reflection.js';
import { createWatchHandler } from './watch-handler.js';

/** Bytes of one request; the largest one allowed, a Renew of 1 000 leases, has about 300 KiB. */
const MAX_REQUEST_BYTES = 1024 * 1024;
const MAX_STREAMS_A_CONNECTION = 10_000;
/** A client that vanished without a word is noticed after the sum of the two. Its own pings are never refused. */
const KEEPALIVE_MS = 10_000;
const KEEPALIVE_TIMEOUT_MS = 5_000;

/** Health service names: the whole node and its lease service need a leader; the cluster service always answers. */
const NEEDS_LEADER = ['', 'fencepost.v1.LeaseService'];
const ALWAYS = 'fencepost.v1.ClusterService';

/** Serves the clients of one node. */
export interface ClientServer {
  /** Binds; rejects with the address in the message when that cannot be. Resolves with the port. */
  listen(): Promise<number>;
  /** What `grpc.health.v1` says of the lease service. */
  setServing(serving: boolean): void;
  /** Takes no new connection, lets open calls and streams end for `graceMs`, then ends them. Called once. */
  close(graceMs: number): Promise<void>;
}

/** A server for `address` (`host:port`), without TLS. */
export function createClientServer(
  address: string,
  context: HandlerContext,
  report: (error: unknown) => void,
): ClientServer {
  const server = new Server({
    'grpc.max_receive_message_length': MAX_REQUEST_BYTES,
    'grpc.max_concurrent_streams': MAX_STREAMS_A_CONNECTION,
    'grpc.keepalive_time_ms': KEEPALIVE_MS,
    'grpc.keepalive_timeout_ms': KEEPALIVE_TIMEOUT_MS,
    'grpc.enable_channelz': 0,
  });
  const handler = createHandler(context, report);
  const pipelines = new Pipelines(context, report);
  const leaseService = { ...LEASE_SERVICE, Pipeline: PIPELINE_METHOD };
  server.addService(leaseService, {
    Pipeline: pipelines.handler,
    Acquire: handler,
    Renew: handler,
    Release: handler,
    Withdraw: handler,
    Verify: handler,
    Get: handler,
    List: handler,
    Watch: createWatchHandler(context, report),
  });
  server.addService(CLUSTER_SERVICE, {
    GetStatus: handler,
    TransferLeadership: handler,
    ForceRelease: handler,
    ChangeLimits: handler,
    GetStateHash: handler,
  });
  const health = new HealthImplementation({ [ALWAYS]: 'SERVING' });
  let bound: Promise<number> | undefined;
  const setServing = (serving: boolean): void => {
    for (const name of NEEDS_LEADER) health.setStatus(name, serving ? 'SERVING' : 'NOT_SERVING');
  };
  setServing(false);
  health.addToServer(server);
  addReflection(server);
  return {
    setServing,
    listen: () => {
      bound = new Promise((resolve, reject) => {
        server.bindAsync(address, ServerCredentials.createInsecure(), (error, port) => {
          if (error === null) resolve(port);
          else reject(cannotListen(address, error));
        });
      });
      return bound;
    },
    close: async (graceMs) => {
      // A shutdown that overtakes the binding would leave the port held (grpc-node #2590).
      const [listening] = await Promise.allSettled([bound]);
      // `forceShutdown` ends no connection while channelz is off: grpc-js then keeps no list of them. `drain` does; it
      // comes before `tryShutdown`, or it would take every connection for one that has closed already.
      if (listening.status === 'fulfilled' && listening.value !== undefined) {
        server.drain(withPort(address, listening.value), graceMs);
      }
      pipelines.close();
      await new Promise<void>((resolve) => {
        server.tryShutdown(() => {
          resolve();
        });
      });
    },
  };
}

function cannotListen(address: string, error: Error): Error {
  const what = error.message.includes('EADDRINUSE')
    ? 'is in use; stop the process that has it, or change clientAddress'
    : `cannot be listened on: ${error.message}`;
  return new Error(`client listener: ${address} ${what}`, { cause: error });
}

/** The address as it is bound: port 0 has become a real one. */
function withPort(address: string, port: number): string {
  return `${address.slice(0, address.lastIndexOf(':'))}:${port}`;
}
