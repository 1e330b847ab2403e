/** The kit over HTTP: every operation is a request of the client to a service of each framework, in front of two stores. */
import { describe, it } from 'vitest';
import { fencedFetch } from '../../src/guard/http.js';
import type { FencedLease, Outcome } from '../../src/guard/types.js';
import type { Between, GuardedStore, GuardSubject } from '../../src/guard/conformance/index.js';
import { HTTP } from '../servers/http.js';
import type { HttpFramework, HttpService, Listening } from '../servers/http.js';
import { builtModule, killedInside } from './killed.js';
import { discard, freshLevelStore, levelStore, memoryStore } from './served-store.js';
import type { ServedStore } from './served-store.js';
import { describeConformance } from './suite.js';

/** A service that stops within its guarded work, and the request that it never answers. */
const CRASH = `
  import { createServer } from 'node:http';
  import { ClassicLevel } from 'classic-level';
  import { fencedFetch, nodeFencing } from '${builtModule('guard/http.js')}';
  import { levelFence } from '${builtModule('guard/leveldb.js')}';
  const [directory, text, item, value] = process.argv.slice(1);
  const lease = { ...JSON.parse(text), token: BigInt(JSON.parse(text).token) };
  const db = new ClassicLevel(directory);
  await db.open();
  const guard = levelFence(db);
  const fencing = nodeFencing({ domains: () => lease.domain });
  const server = createServer(async (request, response) => {
    const leases = await fencing.admit(request, response);
    await guard.run(leases, async (data) => {
      data.put(lease.domain + ' ' + item, value);
      process.stdout.write('checked');
      await new Promise(() => setInterval(() => {}, 1000));
    });
  });
  server.listen(0, '127.0.0.1', () => {
    fencedFetch(lease)('http://127.0.0.1:' + server.address().port, { method: 'POST' });
  });`;

type Start = NonNullable<HttpFramework['start']>;
type Query = Readonly<Record<string, string>>;

class HttpStore implements GuardedStore {
  readonly maxJump = 631_152_000_000_000n;
  readonly #start: Start;
  readonly #refusesEarly: boolean;
  /** By the number in the request: the service awaits what its client wants awaited. */
  readonly #gates = new Map<string, Between>();
  #store: ServedStore;
  #service: Listening | undefined;
  #numbers = 0;

  private constructor(start: Start, store: ServedStore, refusesEarly: boolean) {
    this.#start = start;
    this.#store = store;
    this.#refusesEarly = refusesEarly;
  }

  static async create(start: Start, store: ServedStore, refusesEarly: boolean): Promise<HttpStore> {
    const created = new HttpStore(start, store, refusesEarly);
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
    await killedInside(CRASH, this.#store.directory ?? '', text, item, value);
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
    const response = await fetch(this.#url('/write', [domain], { item, value }), { method: 'POST' });
    if (!response.ok) throw new Error(await response.text());
  }

  #post(path: string, leases: readonly FencedLease[], query: Query): Promise<Outcome<unknown>> {
    const domains = leases.map(({ domain }) => domain);
    return fencedFetch(leases)(this.#url(path, domains, query), { method: 'POST' });
  }

  #url(path: string, domains: readonly string[], query: Query): string {
    const all = new URLSearchParams(query);
    for (const domain of domains) all.append('domain', domain);
    return `${this.#service?.url ?? ''}${path}?${all.toString()}`;
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
    this.#service = await this.#start(service);
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

const ENDS = 'fences and data are lost together with the process';

describe.each(HTTP)('$name', ({ name, start }) => {
  if (start === undefined) {
    it.skip('passes the conformance kit');
    return;
  }
  const inProcess: GuardSubject = {
    name: 'HTTP, in-process',
    create: () => HttpStore.create(start, memoryStore(), true),
    skips: {
      'crash between check and commit': ENDS,
      restart: ENDS,
      'passage of time': 'no fence is ever taken out of memory',
    },
  };
  const level: GuardSubject = {
    name: 'HTTP, LevelDB',
    create: async () => HttpStore.create(start, await freshLevelStore(), false),
  };
  // The adapters are thin, and what races is behind them: all rounds in front of one.
  const options = name === HTTP[0]?.name ? {} : { rounds: 100 };
  describeConformance(inProcess, options);
  describeConformance(level, options);
});
