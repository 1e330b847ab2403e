/** gRPC for tests, without a proto file: messages are JSON, and the one method takes an address, as a service over HTTP does. */
import { Client, credentials, Metadata, Server, ServerCredentials } from '@grpc/grpc-js';
import type { ChannelOptions, ServerUnaryCall, ServiceError } from '@grpc/grpc-js';
import { grpcFencing } from '../../src/guard/grpc.js';
import type { fencedCall, FencedLease, Outcome } from '../../src/guard/grpc.js';
import { textOf } from './http.js';
import type { HttpService, Listening } from './http.js';

/** What goes either way. */
export interface Message {
  readonly text: string;
}

/** The one method. */
export const METHOD = '/test.Store/Do';

/** As the definition of a method has them. */
export const CODEC = {
  requestSerialize: encode,
  requestDeserialize: decode,
  responseSerialize: encode,
  responseDeserialize: decode,
};

type Call = ServerUnaryCall<Message, Message>;

/**
 * Answers with the value, as the services over HTTP do; `url` is the address. With `lose` in the address of a call its
 * connection is cut when the work is done.
 */
export async function startGrpc(service: HttpService): Promise<Listening> {
  const urlOf = ({ request }: Call): URL => new URL(request.text, 'http://localhost');
  const fencing = grpcFencing<Call>({ ...service, domains: (call) => service.domains(urlOf(call)) });
  const server = new Server();
  server.addService(
    { Do: { path: METHOD, requestStream: false, responseStream: false, ...CODEC } },
    {
      Do: fencing.unary<Message>(async (call, leases) => {
        const outcome = await service.handle(urlOf(call), leases);
        if (urlOf(call).searchParams.has('lose')) {
          const cut = new Promise((done) => call.once('cancelled', done));
          server.drain(url, 0);
          await cut;
        }
        return outcome.status === 'applied' ? { ...outcome, value: { text: textOf(outcome) } } : outcome;
      }),
    },
  );
  const url = await listening(server);
  return {
    url,
    [Symbol.asyncDispose]() {
      server.forceShutdown();
      return Promise.resolve();
    },
  };
}

/** Its address. */
export async function listening(server: Server): Promise<string> {
  const port = await new Promise<number>((done, fail) => {
    server.bindAsync('127.0.0.1:0', ServerCredentials.createInsecure(), (error, bound) => {
      if (error === null) done(bound);
      else fail(error);
    });
  });
  return `127.0.0.1:${port}`;
}

/** How a call ended. */
export interface CallEnd {
  readonly error: ServiceError | null;
  readonly value: string | undefined;
  readonly trailers: Metadata;
}

/** A client of such a service. */
export class GrpcCaller {
  readonly #client: Client;
  readonly #fencedCall: typeof fencedCall;

  /** `send` of the package whose client this is. */
  constructor(address: string, send: typeof fencedCall, options: ChannelOptions = {}) {
    this.#client = new Client(address, credentials.createInsecure(), options);
    this.#fencedCall = send;
  }

  /** Under these leases. */
  call(leases: FencedLease | readonly FencedLease[], text: string): Promise<Outcome<unknown>> {
    return this.#fencedCall<Message>(leases, (metadata, callback) =>
      this.#client.makeUnaryRequest(METHOD, encode, decode, { text }, metadata, callback),
    );
  }

  /** Under none. Throws when it is refused. */
  async plainly(text: string): Promise<string> {
    const { error, value } = await this.ask(text, new Metadata());
    if (error !== null) throw error;
    return value ?? '';
  }

  /** As it goes over the network. */
  ask(text: string, metadata: Metadata): Promise<CallEnd> {
    return new Promise((done) => {
      let end: Omit<CallEnd, 'trailers'>;
      this.#client
        .makeUnaryRequest<Message, Message>(METHOD, encode, decode, { text }, metadata, (error, value) => {
          end = { error, value: value?.text };
        })
        .on('status', ({ metadata: trailers }) => {
          done({ ...end, trailers });
        });
    });
  }

  close(): void {
    this.#client.close();
  }
}

function encode(message: Message): Buffer {
  return Buffer.from(JSON.stringify(message));
}

function decode(bytes: Buffer): Message {
  return JSON.parse(bytes.toString()) as Message;
}
