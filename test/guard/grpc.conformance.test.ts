/** The kit over gRPC: every operation is a call of the client to a real server, in front of two stores. */
import { fencedCall } from '../../src/guard/grpc.js';
import { GrpcCaller, startGrpc } from '../servers/grpc.js';
import { builtModule } from './killed.js';
import { freshLevelStore, memoryStore } from './served-store.js';
import { CRASH_BEGINS, IN_PROCESS_SKIPS, ServiceStore } from './service-store.js';
import type { Transport } from './service-store.js';
import { describeConformance } from './suite.js';

/** A service that stops within its guarded work, and the call that it never answers. */
const CRASH = `
  import { Client, credentials, Server, ServerCredentials } from '@grpc/grpc-js';
  import { fencedCall, grpcFencing } from '${builtModule('guard/grpc.js')}';
  ${CRASH_BEGINS}
  const fencing = grpcFencing({ domains: () => lease.domain });
  const same = (bytes) => bytes;
  const Do = {
    path: '/test.Store/Do', requestStream: false, responseStream: false,
    requestSerialize: same, requestDeserialize: same, responseSerialize: same, responseDeserialize: same,
  };
  const server = new Server();
  server.addService({ Do }, {
    Do: fencing.unary((call, leases) => guard.run(leases, async (data) => {
      data.put(lease.domain + ' ' + item, value);
      process.stdout.write('checked');
      await new Promise(() => setInterval(() => {}, 1000));
    })),
  });
  server.bindAsync('127.0.0.1:0', ServerCredentials.createInsecure(), (error, port) => {
    const client = new Client('127.0.0.1:' + port, credentials.createInsecure());
    fencedCall(lease, (metadata, callback) =>
      client.makeUnaryRequest(Do.path, same, same, Buffer.alloc(0), metadata, callback));
  });`;

const transport: Transport = {
  crash: CRASH,
  async start(service) {
    const listening = await startGrpc(service);
    const caller = new GrpcCaller(listening.url, fencedCall);
    return {
      call: (leases, address) => caller.call(leases, address),
      plainly: (address) => caller.plainly(address),
      [Symbol.asyncDispose]() {
        caller.close();
        return listening[Symbol.asyncDispose]();
      },
    };
  },
};

describeConformance({
  name: 'gRPC, in-process',
  create: () => ServiceStore.create(transport, memoryStore(), true),
  skips: IN_PROCESS_SKIPS,
});
describeConformance({
  name: 'gRPC, LevelDB',
  create: async () => ServiceStore.create(transport, await freshLevelStore(), false),
});
