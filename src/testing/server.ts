/** A Fencepost server for the tests of programs that use Fencepost. */
import { connect } from '../client/index.js';
import type { Client, Lease } from '../client/index.js';
import type { Domain } from '../base/ids.js';
import { startLoneNode } from '../node/lone-node.js';
import type { LoneNode } from '../node/lone-node.js';
import { createMemoryDisk, openMemoryStore } from './memory-store.js';

/** The name of the cluster that a test server is, and so the issuer that guards keep beside their fences. */
const CLUSTER = 'testing';
/** Who holds what {@link TestServer.supersede} acquires. */
const HOLDER = 'fencepost/testing';

/**
 * A cluster of one node, in this process and in memory. It serves the real API to any gRPC client: what answers is the
 * code of production, with a store in memory in place of a disk. Tokens are as in production, and greater than those of
 * every server that was started before. TTLs are from 3 000 ms, as by default in production; time is real, so faked timers
 * stop it.
 */
export interface TestServer extends AsyncDisposable {
  /** Where it listens, `127.0.0.1:<a port that was free>`: for `connect`. */
  readonly endpoints: readonly string[];
  /**
   * Ends the lease of a domain (or of a slot, `<name>#<k>`) as expired, at once, as if its holder had been silent for all of
   * its TTL. A cool-down begins, or the next waiter is granted. The holder learns it with its next renewal, after TTL/3
   * at most, unless a guard refuses it before. Rejects when nobody holds the domain.
   */
  expire(domain: string): Promise<void>;
  /**
   * Makes the holder of a domain a stale one: ends its lease and grants the domain to another, who is returned. Open a
   * guard with that lease, and the guard refuses the token of before. The new lease is renewed until it is released or the
   * server stopped. The old holder learns it with its next renewal, after TTL/3 at most; its loss is `force_released`.
   * Rejects when nobody holds the domain, for a slot, and when somebody waits, who would get the domain first: then
   * {@link expire} hands it over.
   */
  supersede(domain: string): Promise<Lease>;
  /** Ends it. Leases are gone with it; a client that is still open finds no node. May be called twice. */
  stop(): Promise<void>;
}

/**
 * Starts a server; resolves when it serves, after some 100 ms. Stop it, or the process does not end. A defect of the server
 * is thrown as an uncaught exception, which no test can overlook.
 */
export async function startTestServer(): Promise<TestServer> {
  const node = await startLoneNode({
    cluster: CLUSTER,
    createStore: (genesis) => openMemoryStore(createMemoryDisk(genesis)),
    failed: (error) => {
      queueMicrotask(() => {
        throw error;
      });
    },
  });
  const endpoints = [`127.0.0.1:${node.port}`];
  const client = connect({ endpoints, holder: HOLDER });
  let stopping: Promise<void> | undefined;
  const stop = (): Promise<void> => {
    stopping ??= client.close().then(() => node.stop());
    return stopping;
  };
  return {
    endpoints,
    expire: (domain) => expire(node, domain),
    supersede: (domain) => supersede(client, domain),
    stop,
    [Symbol.asyncDispose]: stop,
  };
}

async function expire(node: LoneNode, domain: string): Promise<void> {
  if (!(await node.expire(domain as Domain))) throw new Error(`expire: nobody holds ${domain}.`);
}

async function supersede(client: Client, domain: string): Promise<Lease> {
  const { lease, queueLength } = await client.get(domain);
  if (lease === undefined) throw new Error(`supersede: nobody holds ${domain}.`);
  if (domain.includes('#')) throw new Error(`supersede: ${domain} is a slot; nobody can ask for a certain one.`);
  if (queueLength > 0) throw new Error(`supersede: somebody waits for ${domain}; expire hands it over.`);
  await client.forceRelease(domain, lease.token, 'superseded by a test');
  return client.acquire(domain, { ttlMs: lease.ttlMs });
}
