import type { Outcome } from '../../base/errors.js';
import { inTime } from '../../guard/work-time.js';
import { loadOneOf, unusable } from './driver.js';
import { ResourceError, textOf } from './resource-error.js';
import type { Surroundings } from './store.js';

/** The part of a driver that is used: one server, one command at a time, none of them sent twice. */
interface Driver {
  connect(): Promise<unknown>;
  send(command: string, args: string[]): Promise<unknown>;
  close(): void;
}

/** Connects and asks; whatever goes wrong is a `ResourceError` that says what to do. */
export class RedisConnection {
  /** The address without what is secret. */
  readonly place: string;
  readonly #driver: Driver;
  readonly #timeoutMs: number;

  constructor(address: URL, surroundings: Surroundings) {
    this.#timeoutMs = surroundings.timeoutMs;
    const { protocol, host, pathname } = address;
    this.place = `${protocol}//${host}${pathname}`;
    const server = new URL(address);
    // Chosen by a command, whose failure is told.
    server.pathname = '';
    this.#driver = driverFor(server.href, surroundings);
  }

  /** Goes to this database, and gives what the server says of itself. */
  async open(database: string): Promise<string> {
    try {
      await this.#inTime(this.#driver.connect());
    } catch (error) {
      const message = textOf(error);
      this.close();
      // Name and password are told while connecting.
      if (isReply(message)) throw this.#refusal(message, error);
      throw new ResourceError('NO_CONNECTION', `${this.place} cannot be reached: ${message}`, { cause: error });
    }
    try {
      await this.ask('SELECT', database);
      return String(await this.ask('INFO'));
    } catch (error) {
      this.close();
      throw error;
    }
  }

  /** The reply to a command that changes nothing. */
  async ask(command: string, ...args: string[]): Promise<unknown> {
    return this.#send('not-done', command, args);
  }

  /** The reply to a command that changes something; when it is lost nobody knows whether it has. */
  async change(command: string, ...args: string[]): Promise<unknown> {
    return this.#send('unknown', command, args);
  }

  close(): void {
    this.#driver.close();
  }

  async #send(lost: Outcome, command: string, args: string[]): Promise<unknown> {
    try {
      return await this.#inTime(this.#driver.send(command, args));
    } catch (error) {
      const message = textOf(error);
      if (isReply(message)) throw this.#refusal(message, error);
      const look = lost === 'unknown' ? '; look whether it was done' : '';
      const text = `${this.place} did not answer: ${message}${look}`;
      throw new ResourceError('NO_CONNECTION', text, { outcome: lost, cause: error });
    }
  }

  /** The drivers limit only a part of the way. */
  #inTime<T>(answer: Promise<T>): Promise<T> {
    return inTime(answer, this.#timeoutMs, () => new Error(`no answer within ${this.#timeoutMs} ms`));
  }

  #refusal(message: string, cause: unknown): ResourceError {
    const advice = ADVICE[/^[A-Z]+/.exec(message)?.[0] ?? ''] ?? '';
    return new ResourceError('REFUSED', `${this.place} refused: ${message}${advice}`, { cause });
  }
}

/** Is this what a server answered, and not what the driver says of the connection? */
function isReply(message: string): boolean {
  return /^[A-Z]+ /.test(message);
}

/** By the first word of the reply. */
const ADVICE: Readonly<Record<string, string>> = {
  BUSY: '; a script runs for long: wait until it is over',
  MOVED: '; the fence lies on that node of the Redis Cluster: ask there',
  NOAUTH: '; write name and password into the address: redis://USER:PASSWORD@HOST:PORT',
  NOPERM: '; connect as a user that may run scripts on the keys fencepost:*, SCAN, INFO and CONFIG GET',
  READONLY: '; this is a replica: connect to the primary',
};

interface Ioredis {
  connect(): Promise<unknown>;
  call(command: string, args: string[]): Promise<unknown>;
  disconnect(): void;
  on(event: 'error', listener: (error: Error) => void): unknown;
}

interface NodeRedis {
  connect(): Promise<unknown>;
  sendCommand(args: string[]): Promise<unknown>;
  destroy(): void;
  readonly isOpen: boolean;
  on(event: 'error', listener: (error: Error) => void): unknown;
}

function driverFor(address: string, { folder }: Surroundings): Driver {
  const { name, driver } = loadOneOf(['ioredis', 'redis'], folder);
  if (name === 'ioredis') {
    const { Redis } = driver as { readonly Redis?: new (address: string, options: object) => Ioredis };
    if (Redis === undefined) throw unusable(name, 'it has no Redis');
    return ofIoredis(
      new Redis(address, {
        lazyConnect: true,
        maxRetriesPerRequest: 0,
        retryStrategy: () => null,
      }),
    );
  }
  const { createClient } = driver as { readonly createClient?: (options: object) => NodeRedis };
  if (createClient === undefined) throw unusable(name, 'it has no createClient');
  return ofNodeRedis(createClient({ url: address, socket: { reconnectStrategy: false } }));
}

function ofIoredis(client: Ioredis): Driver {
  // What it rejects with says only that the connection is closed.
  let reason: Error | undefined;
  client.on('error', (error) => {
    reason ??= error;
  });
  return {
    connect: async () => {
      await client.connect().catch((error: unknown) => {
        throw reason ?? error;
      });
    },
    send: (command, args) => client.call(command, args),
    close: () => {
      client.disconnect();
    },
  };
}

function ofNodeRedis(client: NodeRedis): Driver {
  // Whoever asks next is told.
  client.on('error', () => undefined);
  return {
    connect: () => client.connect(),
    send: (command, args) => client.sendCommand([command, ...args]),
    close: () => {
      if (client.isOpen) client.destroy();
    },
  };
}
