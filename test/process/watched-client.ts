/**
 * The client library as it is, over real sockets and through a proxy to each node, with every attempt and every reading
 * of its clocks on record. What a test says about time it says in these readings, so a busy machine changes nothing.
 */
import type { Call, LeaseRef } from '../../src/base/api.js';
import type { Reply } from '../../src/client/channel.js';
import { createClient } from '../../src/client/client.js';
import type { Client } from '../../src/client/client.js';
import type { Reading } from '../../src/client/clock.js';
import { safeMs } from '../../src/client/deadline.js';
import { openGrpcChannel } from '../../src/client/grpc-channel.js';
import { openGrpcWatch } from '../../src/client/grpc-watch.js';
import type { Lease } from '../../src/client/index.js';
import { systemSurroundings } from '../../src/client/surroundings.js';
import { TcpProxy } from '../support/tcp-proxy.js';
import type { ProcessNode } from './cluster.js';

/** One attempt of one call, at one endpoint. */
export interface WatchedCall {
  readonly endpoint: string;
  readonly call: Call;
  /** The clocks just before it was sent: a confirmation counts from here. */
  readonly sent: Reading;
  /** Undefined while it is under way, or when it was given up. */
  reply: Reply | undefined;
}

/** One look at the clocks. */
export interface Look {
  readonly read: Reading;
  /**
   * For when it was planned, on the client's monotonic clock: the timer that was being handled, or, where something else
   * came first (an answer, the time-out of an attempt), the next one that was set. Infinity where none was.
   */
  readonly plannedMs: number;
}

/** What a test may set. */
export interface WatchedSettings {
  readonly holder?: string;
  readonly callTimeoutMs?: number;
  /** What the client's `random()` gives; 0 begins with the first endpoint. Real chance by default. */
  readonly chance?: number;
}

/** See the head of the file. Use with `await using`. */
export class WatchedClient implements AsyncDisposable {
  readonly client: Client;
  /** On the way to each node, in the order of the nodes that were given. */
  readonly proxies: readonly TcpProxy[];
  readonly calls: WatchedCall[] = [];
  /** Every look at the clocks, in order. */
  readonly looks: Look[] = [];
  /** Added to what the clocks of this machine say, as far as the client can see, in milliseconds. */
  readonly offset = { monotonicMs: 0, uptimeMs: 0, wallMs: 0 };
  #last: Reading = { monotonicMs: 0, uptimeMs: 0, wallMs: 0 };
  /** The timers that are set, by when each is due on the client's monotonic clock, in milliseconds. */
  readonly #timers = new Map<symbol, number>();
  /** When the timer was due that is being handled; undefined outside of one. */
  #firedMs: number | undefined;

  private constructor(proxies: readonly TcpProxy[], { holder = 'watched', callTimeoutMs, chance }: WatchedSettings) {
    this.proxies = proxies;
    const surroundings = systemSurroundings();
    this.client = createClient(
      {
        endpoints: proxies.map(({ address }) => address),
        holder,
        ...(callTimeoutMs === undefined ? {} : { callTimeoutMs }),
      },
      {
        ...surroundings,
        random: () => chance ?? surroundings.random(),
        clocks: {
          read: () => {
            const { monotonicMs, uptimeMs, wallMs } = surroundings.clocks.read();
            this.#last = {
              monotonicMs: monotonicMs + this.offset.monotonicMs,
              uptimeMs: uptimeMs + this.offset.uptimeMs,
              wallMs: wallMs + this.offset.wallMs,
            };
            this.looks.push({ read: this.#last, plannedMs: this.#firedMs ?? Math.min(...this.#timers.values()) });
            return this.#last;
          },
          uptimeStepMs: () => surroundings.clocks.uptimeStepMs(),
        },
        timers: {
          set: (delayMs, fire) => {
            const timer = Symbol();
            const dueAtMs = this.#last.monotonicMs + delayMs;
            this.#timers.set(timer, dueAtMs);
            const cancel = surroundings.timers.set(delayMs, () => {
              this.#timers.delete(timer);
              this.#firedMs = dueAtMs;
              fire();
              this.#firedMs = undefined;
            });
            return () => {
              this.#timers.delete(timer);
              cancel();
            };
          },
        },
      },
      (endpoint) => {
        const channel = openGrpcChannel(endpoint);
        return {
          send: (call, timeoutMs, done) => {
            // The last thing that the client reads before it sends.
            const watched: WatchedCall = { endpoint, call, sent: this.#last, reply: undefined };
            this.calls.push(watched);
            return channel.send(call, timeoutMs, (reply) => {
              watched.reply = reply;
              done(reply);
            });
          },
          close: () => {
            channel.close();
          },
        };
      },
      openGrpcWatch,
    );
  }

  /** A client of these nodes, in this order. */
  static async of(nodes: readonly ProcessNode[], settings: WatchedSettings = {}): Promise<WatchedClient> {
    const port = ({ clientAddress }: ProcessNode): number =>
      Number(clientAddress.slice(clientAddress.lastIndexOf(':') + 1));
    return new WatchedClient(await Promise.all(nodes.map((node) => TcpProxy.start(port(node)))), settings);
  }

  /** What the clocks said when the client last looked. */
  get last(): Reading {
    return this.#last;
  }

  /** The attempts of one kind of call so far, in the order sent. */
  callsOf<T extends Call['type']>(type: T): (WatchedCall & { readonly call: Extract<Call, { readonly type: T }> })[] {
    return this.calls.filter(
      (each): each is WatchedCall & { readonly call: Extract<Call, { readonly type: T }> } => each.call.type === type,
    );
  }

  /** The clocks before the last attempt that confirmed this lease, by a grant or a renewal that was answered. */
  confirmedAt(lease: Lease): Reading {
    const confirming = this.calls.filter((each) => confirms(each, lease)).map(({ sent }) => sent);
    return confirming.reduce((latest, sent) => (sent.monotonicMs > latest.monotonicMs ? sent : latest));
  }

  /** Until when the client may believe in this lease, on its monotonic clock: as it computes it itself. */
  safeUntilMs(lease: Lease): number {
    return this.confirmedAt(lease).monotonicMs + safeMs(lease.ttlMs);
  }

  /** The network to all nodes goes silent: nothing comes through, nothing ends. */
  cut(): void {
    for (const proxy of this.proxies) proxy.cut();
  }

  /** What nodes answer does not arrive. */
  loseAnswers(): void {
    for (const proxy of this.proxies) proxy.block('toClient');
  }

  /** Everything that was held back is lost, and from now on all comes through. */
  heal(): void {
    for (const proxy of this.proxies) {
      proxy.reset();
      proxy.heal();
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.heal();
    await this.client.close();
    await Promise.all(this.proxies.map((proxy) => proxy.close()));
  }
}

function confirms({ call, reply }: WatchedCall, lease: Lease): boolean {
  if (reply?.type !== 'answer') return false;
  const { answer } = reply;
  const isIt = (ref: LeaseRef | undefined): boolean =>
    ref?.domain === lease.domain && BigInt(ref.token) === lease.token;
  if (answer.type === 'acquire') return answer.outcome.type === 'granted' && isIt(answer.outcome.lease);
  if (answer.type !== 'renew' || call.type !== 'renew') return false;
  return answer.results.some(({ type }, at) => type === 'live' && isIt(call.leases[at]));
}
