/** A small gRPC service for tests, without a proto file: its messages are JSON, its one method takes an address. */
import { createServer, connect } from 'node:net';
import type { AddressInfo, Socket } from 'node:net';
import { Client, credentials, Metadata, Server, ServerCredentials } from '@grpc/grpc-js';
import type { ServerUnaryCall } from '@grpc/grpc-js';
import { fencedCall, grpcFencing } from '../../src/guard/grpc.js';
import type { FencedLease, Outcome } from '../../src/guard/grpc.js';
import type { HttpService } from '../servers/http.js';
import type { Reached } from './service-store.js';

interface Message {
  readonly text: string;
}

const METHOD = '/test.Store/Do';
const encode = (message: Message): Buffer => Buffer.from(JSON.stringify(message));
const decode = (bytes: Buffer): Message => JSON.parse(bytes.toString()) as Message;

/** Its client too. With `lose` in the address the connection is cut when the work is done. */
export async function startGrpc(service: HttpService): Promise<Reached & { readonly sent: () => number }> {
  const urlOf = (call: ServerUnaryCall<Message, Message>): URL => new URL(call.request.text, 'http://localhost');
  let handled = 0;
  const sockets = new Set<Socket>();
  const fencing = grpcFencing<ServerUnaryCall<Message, Message>>({
    ...service,
    domains(call) {
      handled++;
      return service.domains(urlOf(call));
    },
  });
  const server = new Server();
  const definition = { path: METHOD, requestStream: false, responseStream: false } as const;
  server.addService(
    {
      Do: {
        ...definition,
        requestSerialize: encode,
        requestDeserialize: decode,
        responseSerialize: encode,
        responseDeserialize: decode,
      },
    },
    {
      Do: fencing.unary<Message>(async (call, leases) => {
        const outcome = await service.handle(urlOf(call), leases);
        if (urlOf(call).searchParams.has('lose')) for (const socket of sockets) socket.destroy();
        return outcome.status === 'applied' ? { ...outcome, value: { text: 'done' } } : outcome;
      }),
    },
  );
  const port = await new Promise<number>((done, fail) => {
    server.bindAsync('127.0.0.1:0', ServerCredentials.createInsecure(), (error, bound) => {
      if (error === null) done(bound);
      else fail(error);
    });
  });
  // In between, so that a connection can be cut.
  const proxy = createServer({ noDelay: true }, (socket) => {
    const behind = connect({ port, host: '127.0.0.1', noDelay: true });
    for (const [one, other] of [
      [socket, behind],
      [behind, socket],
    ] as const) {
      sockets.add(one);
      one.on('error', () => one.destroy());
      one.on('close', () => {
        sockets.delete(one);
        other.destroy();
      });
      one.pipe(other);
    }
  });
  await new Promise<void>((done) => proxy.listen(0, '127.0.0.1', done));
  const address = `127.0.0.1:${(proxy.address() as AddressInfo).port}`;
  const client = new Client(address, credentials.createInsecure());
  const call = (leases: readonly FencedLease[], text: string): Promise<Outcome<unknown>> =>
    fencedCall<Message>(leases, (metadata, callback) =>
      client.makeUnaryRequest(METHOD, encode, decode, { text }, metadata, callback),
    );
  return {
    call,
    sent: () => handled,
    plainly: (text) =>
      new Promise((done, fail) => {
        client.makeUnaryRequest(METHOD, encode, decode, { text }, new Metadata(), (error, value) => {
          if (error === null) done(value);
          else fail(error);
        });
      }),
    async [Symbol.asyncDispose]() {
      client.close();
      server.forceShutdown();
      const closed = new Promise((done) => proxy.close(done));
      for (const socket of sockets) socket.destroy();
      await closed;
    },
  };
}
