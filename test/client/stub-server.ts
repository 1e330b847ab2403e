/** A stub of the lease service over real sockets, for calls and for streams, and peers that behave badly. */
import { createServer } from 'node:net';
import type { AddressInfo, Server as TcpServer, Socket } from 'node:net';
import { Metadata, Server, ServerCredentials } from '@grpc/grpc-js';
import type { sendUnaryData, ServerDuplexStream, ServerUnaryCall } from '@grpc/grpc-js';
import type { AcquireCall, Call } from '../../src/base/api.js';
import type { Failure } from '../../src/base/errors.js';
import type { Domain, NodeId } from '../../src/base/ids.js';
import type { Revision } from '../../src/base/revision.js';
import type { Channel, OpenChannel, Reply } from '../../src/client/channel.js';
import type { PublicResponse } from '../../src/wire/public-answer.js';
import { failureToStatus } from '../../src/wire/public-error.js';
import type { PipelineAnswer } from '../../src/wire/public-pipeline-messages.js';
import { readOperations } from '../../src/wire/public-pipeline-read.js';
import { PIPELINE_METHOD, ResponseBatch } from '../../src/wire/public-pipeline.js';
import type { OperationOutcome } from '../../src/wire/public-pipeline.js';
import type { WireRequest } from '../../src/wire/public-types.js';
import { LEASE_SERVICE } from '../../src/wire/public.js';
import { BASE, generous, header, requestId } from './world.js';

/** What a test started, to be ended behind it: call {@link endAll} in `afterEach`. */
export const cleanUp: (() => Promise<void> | void)[] = [];
export async function endAll(): Promise<void> {
  for (const end of cleanUp.splice(0).reverse()) await end();
}

export type Handler = (request: WireRequest) => PublicResponse | Failure | undefined;

type RawStream = ServerDuplexStream<Buffer, Buffer>;

export interface StubServer {
  readonly address: string;
  /** Every call that arrived, in either way. */
  readonly calls: readonly WireRequest[];
  /** How many operations each message of a stream held. */
  readonly messages: readonly number[];
  readonly streams: readonly RawStream[];
  /** Answers an operation of the newest stream by its id. */
  readonly answer: (id: number, outcome: OperationOutcome) => void;
  readonly stop: () => void;
}

/** A server of the lease service; `undefined` from the handler means that it never answers. */
export async function serve(handler: Handler, { pipeline = true } = {}): Promise<StubServer> {
  const server = new Server();
  const calls: WireRequest[] = [];
  const messages: number[] = [];
  const streams: RawStream[] = [];
  const unary = (
    { request }: ServerUnaryCall<WireRequest, PublicResponse>,
    done: sendUnaryData<PublicResponse>,
  ): void => {
    calls.push(request);
    const said = handler(request);
    if (said === undefined) return;
    if (!('reason' in said)) {
      done(null, said);
      return;
    }
    const status = failureToStatus(said);
    const metadata = new Metadata();
    for (const [key, value] of status.trailers)
      metadata.add(key, typeof value === 'string' ? value : Buffer.from(value));
    done(Object.assign(new Error(status.message), { code: status.code, details: status.message, metadata }));
  };
  const stream = (raw: RawStream): void => {
    streams.push(raw);
    raw.on('error', () => undefined);
    raw.on('end', () => {
      raw.end();
    });
    raw.on('data', (bytes: Buffer) => {
      const operations = readOperations(bytes);
      messages.push(operations.length);
      const results = new ResponseBatch();
      let of = header();
      for (const { id, request } of operations) {
        if (request === undefined) throw new Error('an operation without a request');
        calls.push(request);
        const said = handler(request);
        if (said === undefined) continue;
        if ('reason' in said) {
          results.add(id, { type: 'failure', failure: said });
          continue;
        }
        of = said.header ?? of;
        results.add(id, { type: 'answer', answer: said.answer as PipelineAnswer });
      }
      if (results.count > 0) raw.write(results.finish(of));
    });
  };
  const unaries = Object.fromEntries(Object.keys(LEASE_SERVICE).map((name) => [name, unary]));
  if (pipeline) server.addService({ ...LEASE_SERVICE, Pipeline: PIPELINE_METHOD }, { ...unaries, Pipeline: stream });
  else server.addService(LEASE_SERVICE, unaries);
  const port = await new Promise<number>((resolve, reject) => {
    server.bindAsync('127.0.0.1:0', ServerCredentials.createInsecure(), (error, bound) => {
      if (error === null) resolve(bound);
      else reject(error);
    });
  });
  const answer = (id: number, outcome: OperationOutcome): void => {
    const results = new ResponseBatch();
    results.add(id, outcome);
    streams.at(-1)?.write(results.finish(header()));
  };
  const stop = (): void => {
    server.forceShutdown();
  };
  cleanUp.push(stop);
  return { address: `127.0.0.1:${port}`, calls, messages, streams, answer, stop };
}

/** Accepts connections and never says a word. */
export async function silentPeer(): Promise<{ address: string; accepted: () => number }> {
  const sockets = new Set<Socket>();
  let accepted = 0;
  const server: TcpServer = createServer((socket) => {
    accepted++;
    sockets.add(socket);
    socket.on('error', () => socket.destroy());
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  cleanUp.push(() => {
    for (const socket of sockets) socket.destroy();
    server.close();
  });
  return { address: `127.0.0.1:${(server.address() as AddressInfo).port}`, accepted: () => accepted };
}

/** An address at which nobody listens. */
export async function nobody(): Promise<string> {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  await new Promise((resolve) => server.close(resolve));
  return `127.0.0.1:${port}`;
}

export function open(address: string, opener: OpenChannel): Channel {
  const channel = opener(address);
  cleanUp.push(() => {
    channel.close();
  });
  return channel;
}

export function send(channel: Channel, call: Call, timeoutMs: number): Promise<Reply> {
  return new Promise((resolve) => {
    channel.send(call, timeoutMs, resolve);
  });
}

export const ACQUIRE: AcquireCall = {
  type: 'acquire',
  domain: 'orders/eu' as Domain,
  requestId: requestId(1),
  holder: 'tester',
  ttlMs: 15_000,
  waitMs: 60_000,
  coolDownMs: 2_000,
  slots: 3,
  metadata: [['zone', 'ü']],
  seenRevision: BASE as Revision,
};

/** What `generous` answers, as a server's response. */
export function generously(node = 'n1', leader = 'n1'): Handler {
  const answer = generous();
  return (request) => {
    const reply = answer({ call: callOf(request) });
    if (reply.type !== 'answer') throw new Error(`no answer to ${request.type}`);
    return { header: header({ node: node as NodeId, leader: leader as NodeId }), answer: reply.answer, version: '' };
  };
}

/** Enough of a request's call for `generous`. */
function callOf(request: WireRequest): Call {
  const { message } = request;
  if (message === undefined) throw new Error('unreadable request');
  return { type: request.type, ...message } as unknown as Call;
}
