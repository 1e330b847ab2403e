/** A TCP proxy that stands for a bad network between two processes on one machine. Its faults never close a socket by themselves. */
import type { AddressInfo, Server, Socket } from 'node:net';
import { connect, createServer } from 'node:net';

/** The way of the bytes: from who connected to the target, or back. */
export type Direction = 'toTarget' | 'toClient';

interface Way {
  blocked: boolean;
  delayMs: number;
}

/** Forwards connections to one target until told otherwise. */
export class TcpProxy {
  readonly #target: { readonly host: string; readonly port: number };
  readonly #ways: Record<Direction, Way> = {
    toTarget: { blocked: false, delayMs: 0 },
    toClient: { blocked: false, delayMs: 0 },
  };
  readonly #pumps = new Set<Pump>();
  readonly #sockets = new Set<Socket>();
  #server: Server | undefined;
  #port = 0;
  #silent = false;
  #chokeBytes = Infinity;
  /** Connections accepted so far. */
  accepted = 0;

  private constructor(targetPort: number) {
    this.#target = { host: '127.0.0.1', port: targetPort };
  }

  /** Starts a proxy to `targetPort` on loopback, on a free port or `port`. */
  static async start(targetPort: number, port = 0): Promise<TcpProxy> {
    const proxy = new TcpProxy(targetPort);
    proxy.#port = port;
    await proxy.listen();
    return proxy;
  }

  /** Where to connect to. */
  get port(): number {
    return this.#port;
  }

  /** `127.0.0.1:port`. */
  get address(): string {
    return `127.0.0.1:${this.#port}`;
  }

  /** Connections open now. */
  get open(): number {
    return this.#sockets.size;
  }

  /** Drops everything in both directions, without a word, as an unplugged cable; {@link heal} delivers it late. */
  cut(): void {
    this.block('toTarget');
    this.block('toClient');
  }

  /** Holds back everything in one direction. */
  block(direction: Direction): void {
    this.#ways[direction].blocked = true;
  }

  /** New connections are accepted and never answered; those that are open go on. */
  silence(): void {
    this.#silent = true;
  }

  /** A connection that has carried `bytes` in one direction carries no more in it, until {@link heal}. */
  choke(bytes: number): void {
    this.#chokeBytes = bytes;
  }

  /** How many connections are choked in one of their directions. */
  get choked(): number {
    return [...this.#pumps].filter((pump) => pump.carried >= this.#chokeBytes).length;
  }

  /** Delays everything by `ms`, in both directions. */
  delay(ms: number): void {
    this.#ways.toTarget.delayMs = ms;
    this.#ways.toClient.delayMs = ms;
  }

  /** Ends block, silence and delay. Connections that met silence stay silent. */
  heal(): void {
    this.#silent = false;
    this.#chokeBytes = Infinity;
    this.delay(0);
    for (const way of Object.values(this.#ways)) way.blocked = false;
    for (const pump of this.#pumps) {
      pump.go();
      if (pump.ended) this.#pumps.delete(pump);
    }
  }

  /** Ends every open connection with a reset. */
  reset(): void {
    for (const socket of this.#sockets) socket.resetAndDestroy();
  }

  /** Refuses new connections; open ones go on. */
  async refuse(): Promise<void> {
    const server = this.#server;
    this.#server = undefined;
    if (server === undefined) return;
    await new Promise<void>((resolve) => {
      server.close(() => undefined);
      // close() waits for open connections; the listening socket itself is gone at once.
      setImmediate(resolve);
    });
  }

  /** Takes connections again, on the same port. */
  async listen(): Promise<void> {
    const server = createServer((socket) => {
      this.#accept(socket);
    });
    this.#server = server;
    await new Promise<void>((resolve, reject) => {
      server.once('error', reject);
      server.listen(this.#port, '127.0.0.1', resolve);
    });
    this.#port = (server.address() as AddressInfo).port;
  }

  /** Stops the proxy and ends every connection. */
  async close(): Promise<void> {
    const refused = this.refuse();
    for (const socket of this.#sockets) socket.destroy();
    await refused;
  }

  #accept(client: Socket): void {
    this.accepted += 1;
    this.#keep(client);
    if (this.#silent) {
      // Reads, so that it notices when the other end gives up.
      client.resume();
      return;
    }
    const target = connect(this.#target);
    this.#keep(target);
    this.#pipe(client, target, this.#ways.toTarget);
    this.#pipe(target, client, this.#ways.toClient);
  }

  #keep(socket: Socket): void {
    this.#sockets.add(socket);
    socket.setNoDelay(true);
    socket.on('error', () => undefined);
    socket.on('close', () => this.#sockets.delete(socket));
  }

  #pipe(from: Socket, to: Socket, way: Way): void {
    const pump: Pump = new Pump(
      from,
      to,
      () => way.blocked || pump.carried >= this.#chokeBytes,
      () => way.delayMs,
    );
    this.#pumps.add(pump);
    from.on('close', () => {
      // What a block holds back is still to be delivered, the end of the connection too.
      if (pump.ended) this.#pumps.delete(pump);
    });
  }
}

/** Carries bytes, and the end of the stream, one way. */
class Pump {
  /** Bytes taken from the sender so far. */
  carried = 0;
  readonly #from: Socket;
  readonly #blocked: () => boolean;
  readonly #delayMs: () => number;
  /** Held back by a block. */
  readonly #waiting: (() => void)[] = [];
  /** On their way. */
  readonly #delayed: (() => void)[] = [];

  constructor(from: Socket, to: Socket, blocked: () => boolean, delayMs: () => number) {
    this.#from = from;
    this.#blocked = blocked;
    this.#delayMs = delayMs;
    from.on('data', (bytes: Buffer) => {
      this.#pass(() => {
        if (to.destroyed || to.write(bytes)) return;
        from.pause();
        to.once('drain', () => {
          if (this.#waiting.length === 0) from.resume();
        });
      });
      this.carried += bytes.byteLength;
    });
    from.on('end', () => {
      this.#pass(() => to.end());
    });
    from.on('error', () => {
      this.#pass(() => to.resetAndDestroy());
    });
  }

  /** True when the sender is gone and nothing of it is held back. */
  get ended(): boolean {
    return this.#from.destroyed && this.#waiting.length === 0;
  }

  /** Delivers what was held back. */
  go(): void {
    for (const step of this.#waiting.splice(0)) step();
    if (!this.#from.destroyed) this.#from.resume();
  }

  #pass(step: () => void): void {
    const delayMs = this.#delayMs();
    if (delayMs === 0 && this.#delayed.length === 0) {
      this.#deliver(step);
      return;
    }
    // Each timer delivers the oldest, whichever it was set for: bytes never overtake each other.
    this.#delayed.push(step);
    setTimeout(() => {
      const oldest = this.#delayed.shift();
      if (oldest !== undefined) this.#deliver(oldest);
    }, delayMs);
  }

  #deliver(step: () => void): void {
    if (this.#blocked()) this.#hold(step);
    else step();
  }

  #hold(step: () => void): void {
    this.#waiting.push(step);
    this.#from.pause();
  }
}
