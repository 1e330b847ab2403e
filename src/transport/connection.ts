/**
 * A gRPC client with a connection of its own that can be ended at any time. Closing a client of grpc-js alone leaves a
 * socket behind that was accepted and never answered (grpc-node #2785), for as long as the other end keeps it: a
 * stopped process would collect one with every dial. So each socket is noted on its way into the client.
 */
import type { Socket } from 'node:net';
import * as grpc from '@grpc/grpc-js';
import { targetOf } from './address.js';
import { CLIENT_OPTIONS } from './channel.js';

type SecureConnector = grpc.experimental.SecureConnector;

/** See the head of this file. */
export class Connection {
  readonly client: grpc.Client;
  readonly #credentials = new NotingCredentials();

  /** Dials at the first call. The name in `address` is resolved then. */
  constructor(address: string) {
    this.client = new grpc.Client(targetOf(address), this.#credentials, CLIENT_OPTIONS);
  }

  /**
   * Ends client and connection; calls under way end as cancelled. A TCP connect that nobody has answered yet cannot be
   * reached: the kernel gives it up after about two minutes.
   */
  close(): void {
    this.client.close();
    this.#credentials.destroySockets();
  }
}

/** No credentials: plain TCP. Knows the sockets that connections are made on. */
class NotingCredentials extends grpc.ChannelCredentials {
  readonly #plain = grpc.credentials.createInsecure();
  readonly #sockets = new Set<Socket>();
  #closed = false;

  destroySockets(): void {
    this.#closed = true;
    for (const socket of this.#sockets) socket.destroy();
  }

  override _isSecure(): boolean {
    return false;
  }

  override _equals(other: grpc.ChannelCredentials): boolean {
    return this === other;
  }

  override _createSecureConnector(
    ...target: Parameters<grpc.ChannelCredentials['_createSecureConnector']>
  ): SecureConnector {
    const plain = this.#plain._createSecureConnector(...target);
    return {
      connect: (socket) => {
        this.#sockets.add(socket);
        socket.once('close', () => this.#sockets.delete(socket));
        if (this.#closed) socket.destroy();
        return plain.connect(socket);
      },
      waitForReady: () => plain.waitForReady(),
      getCallCredentials: () => plain.getCallCredentials(),
      destroy: () => {
        plain.destroy();
      },
    };
  }
}
