/** A store for the kit behind a service that is reached over a network: every guarded operation is a call of its client. */
import type { FencedLease, Outcome } from '../../src/guard/types.js';
import type { Between, GuardedStore } from '../../src/guard/conformance/index.js';
import type { HttpService } from '../servers/http.js';
import { builtModule, killedInside } from './killed.js';
import { discard, levelStore } from './served-store.js';
import type { ServedStore } from './served-store.js';

/** A service that listens, and its client. Addresses are a path and a query. */
export interface Reached extends AsyncDisposable {
  /** A call under these leases. */
  call(leases: readonly FencedLease[], address: string): Promise<Outcome<unknown>>;
  /** A call that presents none. Throws when it is refused. */
  plainly(address: string): Promise<unknown>;
}

/** A kind of network. */
export interface Transport {
  start(service: HttpService): Promise<Reached>;
  /** A program for {@link killedInside}: a service on a LevelDB that stops within its guarded work. */
  readonly crash: string;
}

/** How such a program begins. */
export const CRASH_BEGINS = `
  import { ClassicLevel } from 'classic-level';
  import { levelFence } from '${builtModule('guard/leveldb.js')}';
  const [directory, text, item, value] = process.argv.slice(1);
  const lease = { ...JSON.parse(text), token: BigInt(JSON.parse(text).token) };
  const db = new ClassicLevel(directory);
  await db.open();
  const guard = levelFence(db);`;

type Query = Readonly<Record<string, string>>;

export class ServiceStore implements GuardedStore {
  readonly maxJump = 631_152_000_000_000n;
  readonly #transport: Transport;
  readonly #refusesEarly: boolean;
  /** By the number in the request: the service awaits what its client wants awaited. */
  readonly #gates = new Map<string, Between>();
  #store: ServedStore;
  #service: Reached | undefined;
  #numbers = 0;

  private constructor(transport: Transport, store: ServedStore, refusesEarly: boolean) {
    this.#transport = transport;
    this.#store = store;
    this.#refusesEarly = refusesEarly;
  }

  static async create(transport: Transport, store: ServedStore, refusesEarly: boolean): Promise<ServiceStore> {
    const created = new ServiceStore(transport, store, refusesEarly);
    await created.#listen();
    return created;
  }

  async open(lease: FencedLease): ReturnType<GuardedStore['open']> {
    const opened = await this.#post('/open', [lease], {});
    if (opened.status !== 'applied') return opened;
    return { ...opened, value: { write: (item, value, between) => this.write(lease, item, value, between) } };
  }

  async write(lease: FencedLease, item: string, value: string, between: Between): Promise<Outcome<unknown>> {
    const gate = String(this.#numbers++);
    this.#gates.set(gate, between);
    try {
      return await this.#post('/write', [lease], { item, value, gate });
    } finally {
      this.#gates.delete(gate);
    }
  }

  read(domain: string, item: string): Promise<string | undefined> {
    return this.#store.read(domain, item);
  }

  async close(): Promise<void> {
    await this.#service?.[Symbol.asyncDispose]();
    await discard(this.#store);
  }

  remove(lease: FencedLease, item: string): Promise<Outcome<unknown>> {
    return this.#post('/remove', [lease], { item });
  }

  writeAll(leases: readonly FencedLease[], item: string, value: string): Promise<Outcome<unknown>> {
    return this.#post('/write', leases, { item, value });
  }

  async writeAndCrash(lease: FencedLease, item: string, value: string): Promise<void> {
    await this.#end();
    const text = JSON.stringify({ ...lease, token: lease.token.toString() });
    await killedInside(this.#transport.crash, this.#store.directory ?? '', text, item, value);
    await this.#begin();
  }

  writeLosingResponse(lease: FencedLease, item: string, value: string): Promise<Outcome<unknown>> {
    return this.#post('/write', [lease], { item, value, lose: '' });
  }

  async restart(): Promise<void> {
    await this.#end();
    await this.#begin();
  }

  async age(): Promise<void> {
    await this.#store.compact?.();
  }

  async reset(lease: FencedLease): Promise<void> {
    await this.#store.reset(lease);
  }

  async allowIssuer(domain: string, cluster: string): Promise<void> {
    await this.#store.allowIssuer(domain, cluster);
  }

  async writeWithoutLease(domain: string, item: string, value: string): Promise<void> {
    await this.#reached.plainly(addressOf('/write', [domain], { item, value }));
  }

  #post(path: string, leases: readonly FencedLease[], query: Query): Promise<Outcome<unknown>> {
    const domains = leases.map(({ domain }) => domain);
    return this.#reached.call(leases, addressOf(path, domains, query));
  }

  get #reached(): Reached {
    if (this.#service === undefined) throw new Error('the service is not there');
    return this.#service;
  }

  #handle(url: URL, leases: readonly FencedLease[]): Promise<Outcome<unknown>> {
    const { searchParams } = url;
    const [lease] = leases;
    if (url.pathname === '/open' && lease !== undefined) return this.#store.open(lease);
    const between = this.#gates.get(searchParams.get('gate') ?? '') ?? (() => Promise.resolve());
    return this.#store.run(leases, {
      item: searchParams.get('item') ?? '',
      value: searchParams.get('value') ?? undefined,
      between,
    });
  }

  async #listen(): Promise<void> {
    const service: HttpService = {
      domains: ({ searchParams }) => searchParams.getAll('domain'),
      handle: (url, leases) => this.#handle(url, leases),
      ...(this.#refusesEarly ? { guard: this.#store } : {}),
    };
    this.#service = await this.#transport.start(service);
  }

  async #end(): Promise<void> {
    await this.#service?.[Symbol.asyncDispose]();
    await this.#store.close();
  }

  async #begin(): Promise<void> {
    this.#store = await levelStore(this.#store.directory ?? '');
    await this.#listen();
  }
}

function addressOf(path: string, domains: readonly string[], query: Query): string {
  const all = new URLSearchParams(query);
  for (const domain of domains) all.append('domain', domain);
  return `${path}?${all.toString()}`;
}

/** Of a service whose store is its memory. */
export const IN_PROCESS_SKIPS = {
  'crash between check and commit': 'fences and data are lost together with the process',
  restart: 'fences and data are lost together with the process',
  'passage of time': 'no fence is ever taken out of memory',
} as const;
