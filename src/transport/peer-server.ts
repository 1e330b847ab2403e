/**
 * The peer listener: takes the streams of other nodes, judges their hello, keeps one stream of a kind for each node.
 *
 * It listens by itself and hands the connections to gRPC: a session that gRPC has been told to end waits for the other
 * end, which may be gone without a word, so whoever stops must have the sockets in hand.
 */
import type { AddressInfo, Socket } from 'node:net';
import { createServer } from 'node:net';
import * as grpc from '@grpc/grpc-js';
import type { BootId, NodeId } from '../base/ids.js';
import type { FormRequest, FormResponse, Hello } from '../replica/types.js';
import { decodeFormRequest, encodeFormResponse, encodeHello } from '../wire/hello.js';
import { helloFrame } from '../wire/peer-frames.js';
import { placeOf } from './address.js';
import type { Log, ServerStream } from './channel.js';
import { asBuffer, CLOSE_GRACE_MS, identity, faultOf, PATHS, SERVER_OPTIONS } from './channel.js';
import { helloFault, secondBootFault } from './greeting.js';
import type { IncomingKind, IncomingOwner, StreamHandler } from './incoming.js';
import { Incoming } from './incoming.js';

/** How often, and how many times, the streams of an older process are looked at after they were asked for a sign of life. */
const CHALLENGE_STEP_MS = 50;
const CHALLENGE_STEPS = 10;
/** Nodes whose last refusal is remembered, so that it is logged once and not with every retry. */
const MAX_REPORTED = 64;
const NOTHING = Buffer.alloc(0);

/** What the server needs of its owner. */
export interface PeerServerOptions {
  /** `host:port` to listen on; port 0 takes a free one. */
  readonly bind: string;
  /** Makes the handler of a stream that is being admitted; called before the answering hello leaves. */
  readonly admitted: (incoming: Incoming, hello: Hello) => StreamHandler;
  /** Answers a question while forming. A rejection is told to the asker as FAILED_PRECONDITION with its message. */
  readonly onForm: (request: FormRequest) => Promise<FormResponse>;
  readonly log: Log;
}

/** See the head of this file. */
export class PeerServer implements IncomingOwner {
  readonly #options: PeerServerOptions;
  readonly #server = new grpc.Server(SERVER_OPTIONS);
  readonly #listener = createServer({ noDelay: true });
  readonly #sockets = new Set<Socket>();
  readonly #streams = new Set<Incoming>();
  readonly #challenges = new Set<NodeJS.Timeout>();
  readonly #reported = new Map<NodeId, string>();
  #self: Hello | undefined;
  #closing = false;

  constructor(options: PeerServerOptions) {
    this.#options = options;
    const take = (kind: IncomingKind) => (stream: ServerStream) => {
      this.#streams.add(new Incoming(kind, stream, this));
    };
    const injector = this.#server.createConnectionInjector(grpc.ServerCredentials.createInsecure());
    this.#listener.on('connection', (socket) => {
      this.#sockets.add(socket);
      socket.on('close', () => this.#sockets.delete(socket));
      injector.injectConnection(socket);
    });
    this.#server.addService(
      {
        Control: method(PATHS.control, true),
        Append: method(PATHS.append, true),
        Forward: method(PATHS.forward, true),
        InstallSnapshot: method(PATHS.snapshot, true),
        Form: method(PATHS.form, false),
      },
      {
        Control: take('control'),
        Append: take('append'),
        Forward: take('forward'),
        InstallSnapshot: take('snapshot'),
        Form: (call: grpc.ServerUnaryCall<Buffer, Buffer>, callback: grpc.sendUnaryData<Buffer>) => {
          this.#form(call.request).then(
            (response) => {
              callback(null, response);
            },
            (error: unknown) => {
              callback({ code: grpc.status.FAILED_PRECONDITION, details: faultOf(error) });
            },
          );
        },
      },
    );
  }

  /** Listens; resolves to the port. Rejects with an Error that names the address. */
  listen(): Promise<number> {
    const { bind } = this.#options;
    return new Promise((resolve, reject) => {
      const failed = (error: Error & { code?: string }): void => {
        const inUse = error.code === 'EADDRINUSE';
        const fault = inUse
          ? `${bind} is in use; stop the process that has it, or configure another peer address`
          : `cannot listen on ${bind}: ${error.message}`;
        reject(new Error(`peer listener: ${fault}`));
      };
      this.#listener.once('error', failed);
      this.#listener.listen(placeOf(bind), () => {
        this.#listener.removeListener('error', failed);
        // A connection that could not be accepted, for want of file descriptors say, is no reason to end.
        this.#listener.on('error', (error) => {
          this.#options.log('error', 'the peer listener failed to accept', { bind, reason: error.message });
        });
        // After listen() on TCP the address is an AddressInfo.
        resolve((this.#listener.address() as AddressInfo).port);
      });
    });
  }

  /** From now on streams are taken, under this name. */
  activate(self: Hello): void {
    this.#self = self;
  }

  /** Ends every stream with UNAVAILABLE, waits a moment for connections to close, then closes them by force. */
  async close(): Promise<void> {
    this.#closing = true;
    for (const timer of this.#challenges) clearInterval(timer);
    this.#challenges.clear();
    for (const incoming of this.#streams) incoming.refuse(grpc.status.UNAVAILABLE, 'this node is stopping');
    this.#server.tryShutdown(() => undefined);
    const force = setTimeout(() => {
      for (const socket of this.#sockets) socket.destroy();
    }, CLOSE_GRACE_MS);
    // Called when the last connection has closed; at once, with an error, when it never listened.
    await new Promise((resolve) => this.#listener.close(resolve));
    clearTimeout(force);
    this.#server.forceShutdown();
  }

  greeted(incoming: Incoming, hello: Hello): void {
    const self = this.#self;
    if (self === undefined || this.#closing) {
      incoming.refuse(grpc.status.UNAVAILABLE, this.#closing ? 'this node is stopping' : 'not formed yet');
      return;
    }
    const fault = helloFault(self, hello);
    if (fault !== undefined) {
      this.#refuse(incoming, hello, 'warn', fault);
      return;
    }
    const rivals = this.#rivals(hello);
    if (rivals.length === 0) this.#admit(self, incoming, hello);
    else this.#challenge(incoming, hello, rivals);
  }

  over(incoming: Incoming): void {
    this.#streams.delete(incoming);
  }

  fault(incoming: Incoming, reason: string): void {
    const node = incoming.liveHello?.node ?? '';
    this.#options.log('error', 'ended a stream from a peer', {
      node,
      kind: incoming.kind,
      remote: incoming.remote,
      reason,
    });
  }

  async #form(bytes: Buffer): Promise<Buffer> {
    return asBuffer(encodeFormResponse(await this.#options.onForm(decodeFormRequest(bytes))));
  }

  /** Admitted streams of another process that calls itself the same node. */
  #rivals(hello: Hello): Incoming[] {
    return this.#of(hello.node, (boot) => boot !== hello.boot);
  }

  #of(node: NodeId, boot: (boot: BootId) => boolean): Incoming[] {
    return [...this.#streams].filter(({ liveHello }) => liveHello?.node === node && boot(liveHello.boot));
  }

  /**
   * Two processes of one node (S7): the older one's streams are asked for a sign of life. If one comes, the newcomer is
   * refused; if none comes, its process or host is gone without a word, and the newcomer takes its place.
   */
  #challenge(incoming: Incoming, hello: Hello, rivals: readonly Incoming[]): void {
    const before = rivals.map((rival) => rival.frames);
    for (const rival of rivals) if (rival.kind !== 'snapshot') rival.write(NOTHING, () => undefined);
    let steps = 0;
    const timer = setInterval(() => {
      steps += 1;
      const answered = rivals.find((rival, at) => rival.frames !== before[at])?.liveHello;
      const gone = rivals.every((rival) => rival.over);
      if (!incoming.over && answered === undefined && !gone && steps < CHALLENGE_STEPS) return;
      clearInterval(timer);
      this.#challenges.delete(timer);
      if (incoming.over) return;
      if (answered !== undefined) {
        this.#refuse(incoming, hello, 'error', secondBootFault(hello, answered));
        return;
      }
      for (const rival of rivals)
        rival.refuse(grpc.status.ABORTED, 'silent, and replaced by a newer process of this node');
      // Another newcomer may have been admitted meanwhile.
      this.greeted(incoming, hello);
    }, CHALLENGE_STEP_MS);
    this.#challenges.add(timer);
  }

  #admit(self: Hello, incoming: Incoming, hello: Hello): void {
    const older = this.#of(hello.node, (boot) => boot === hello.boot).filter(({ kind }) => kind === incoming.kind);
    for (const each of older) each.refuse(grpc.status.ABORTED, 'replaced by a newer stream of this node', true);
    this.#reported.delete(hello.node);
    incoming.admit(helloFrame(encodeHello(self)), this.#options.admitted(incoming, hello));
  }

  #refuse(incoming: Incoming, hello: Hello, level: 'warn' | 'error', reason: string): void {
    if (this.#reported.get(hello.node) !== reason) {
      if (this.#reported.size >= MAX_REPORTED) this.#reported.clear();
      this.#reported.set(hello.node, reason);
      this.#options.log(level, 'refused a peer', { peer: hello.node, remote: incoming.remote, reason });
    }
    incoming.refuse(grpc.status.FAILED_PRECONDITION, reason);
  }
}

function method(path: string, streams: boolean): grpc.MethodDefinition<Buffer, Buffer> {
  return {
    path,
    requestStream: streams,
    responseStream: streams,
    requestSerialize: identity,
    requestDeserialize: identity,
    responseSerialize: identity,
    responseDeserialize: identity,
  };
}
