/**
 * A node without disk and peers, for `fencepost/testing`: the production node, with its server, replica and executor,
 * over a store that somebody else brings. It is the only member of its cluster.
 */
import { randomBytes } from 'node:crypto';
import { performance } from 'node:perf_hooks';
import { setTimeout as delay } from 'node:timers/promises';
import { assert } from '../base/assert.js';
import type { DirectoryId, Domain, NodeId } from '../base/ids.js';
import { DEFAULT_TTL_MS, ELECTION_MAX_MS, ELECTION_MIN_MS, HEARTBEAT_MS, TICK_MS } from '../base/limits.js';
import { ZERO_REVISION } from '../base/revision.js';
import { leaseOf } from '../lease/lookup.js';
import { endTime } from '../replica/clock.js';
import type { Store } from '../replica/ports.js';
import type { Replica } from '../replica/replica.js';
import type { Event, Genesis } from '../replica/types.js';
import type { NodeConfig } from './config.js';
import type { Log } from './log.js';
import { Node } from './node.js';
import type { Ending } from './node.js';
import { systemPorts } from './ports.js';
import type { NodePorts } from './ports.js';

/** What the node is given. */
export interface LoneNodeOptions {
  /** Name of the cluster. */
  readonly cluster: string;
  /** Makes the store of a member that has just accepted this record. */
  readonly createStore: (genesis: Genesis) => Store;
  /** The node failed, by a defect: nothing of it may be trusted any more. Not called before `startLoneNode` resolves. */
  readonly failed: (error: Error) => void;
}

/** A running one. */
export interface LoneNode {
  /** Where it serves clients, on 127.0.0.1. */
  readonly port: number;
  /**
   * Ends the lease of a domain or slot by time, now. Resolves when that is applied; false when nobody held it.
   */
  expire(domain: Domain): Promise<boolean>;
  /** Answers what it took and closes. Rejects with what it failed by, if it did. */
  stop(): Promise<void>;
}

const NODE = 'n1' as NodeId;
/** How far the clock is moved at a time while nobody leads, in milliseconds: what one step takes for ticks at most. */
const SKIP_MS = 10 * TICK_MS;
/** How often a condition is looked at, in milliseconds. */
const LOOK_MS = 5;

const SILENT: Log = { info: () => undefined, warn: () => undefined, error: () => undefined, audit: () => undefined };

/** Starts one; resolves when it serves. */
export async function startLoneNode({ cluster, createStore, failed }: LoneNodeOptions): Promise<LoneNode> {
  let skippedMs = 0;
  let running: { readonly replica: Replica; readonly dispatch: (event: Event) => void } | undefined;
  let ending: Ending | undefined;
  let end: () => void = () => undefined;
  const ended = new Promise<void>((resolve) => (end = resolve));
  let started = false;
  const ports: NodePorts = {
    ...lonePorts(createStore),
    time: () => ({ nowMs: performance.now() + skippedMs, unixMs: Date.now() }),
    runs: (replica, dispatch) => (running = { replica, dispatch }),
  };
  const onEnd = (how: Ending): void => {
    ending = how;
    end();
    const error = errorOf(how);
    if (started && error !== undefined) failed(error);
  };
  const node = new Node(configOf(cluster), 'testing', SILENT, onEnd, ports);
  await node.start();
  while (running?.replica.context.leadership?.ready === undefined) {
    if (ending !== undefined) {
      node.stop();
      throw errorOf(ending) ?? new Error('the server was stopped while it started');
    }
    await delay(LOOK_MS);
    // Nobody else can be elected, so nobody need be waited for: the time-out may pass faster than the clock.
    skippedMs += SKIP_MS;
  }
  started = true;
  const { replica, dispatch } = running;
  const { clientPort: port } = node;
  assert(port !== undefined, 'a node serves at no port');
  return {
    port,
    expire: async (domain) => {
      const token = leaseOf(replica.context.lease, domain)?.token;
      if (token === undefined) return false;
      while (ending === undefined && leaseOf(replica.context.lease, domain)?.token === token) {
        const { leadership, time } = replica.context;
        const timed = leadership?.clock.timed.get(domain);
        // Again in each round: a renewal that was on its way moves the end.
        if (leadership !== undefined && timed?.token === token) endTime(leadership.clock, timed, time.nowMs);
        dispatch({ type: 'tick' });
        await delay(LOOK_MS);
      }
      return true;
    },
    stop: async () => {
      node.stop();
      await ended;
      const error = ending === undefined ? undefined : errorOf(ending);
      if (error !== undefined) throw error;
    },
  };
}

function errorOf(ending: Ending): Error | undefined {
  switch (ending.type) {
    case 'stopped':
      return undefined;
    case 'refused':
      return new Error(ending.message);
    case 'disk':
    case 'defect':
      return ending.error;
  }
}

function configOf(cluster: string): NodeConfig {
  const peerAddress = '127.0.0.1:0';
  return {
    cluster,
    nodeId: NODE,
    dataDir: '',
    clientAddress: '127.0.0.1:0',
    peerAddress,
    members: [{ nodeId: NODE, peerAddress }],
    form: true,
    floor: ZERO_REVISION,
    holdMs: 0,
    insecure: false,
    diskFloorBytes: 0,
    tickMs: TICK_MS,
    heartbeatMs: HEARTBEAT_MS,
    electionMinMs: ELECTION_MIN_MS,
    electionMaxMs: ELECTION_MAX_MS,
    defaultTtlMs: DEFAULT_TTL_MS,
    logLevel: 'error',
  };
}

function lonePorts(createStore: (genesis: Genesis) => Store): NodePorts {
  let store: Store | undefined;
  return {
    ...systemPorts,
    inspectDirectory: () => Promise.resolve({ type: 'empty' }),
    prepareDirectory: () => Promise.resolve(randomBytes(16).toString('hex') as DirectoryId),
    storeGenesis: (_, genesis) => {
      store = createStore(genesis);
      return Promise.resolve();
    },
    openStore: () => {
      assert(store !== undefined, 'a store is opened before it was made');
      return Promise.resolve(store);
    },
    diskFree: () => Promise.resolve(Number.MAX_SAFE_INTEGER),
    createTransport: () => ({
      listen: () => Promise.resolve(0),
      ask: () => Promise.reject(new Error('there is no other member')),
      activate: () => undefined,
      perform: () => undefined,
      chunkStaged: () => undefined,
      close: () => Promise.resolve(),
    }),
  };
}
