/**
 * One node: what `fencepost start` runs. Listens, forms or opens its directory, runs the replica, stops in order.
 * Assembly only; every decision is made elsewhere.
 */
import { randomBytes } from 'node:crypto';
import { performance } from 'node:perf_hooks';
import { AssertionFailed } from '../base/assert.js';
import type { BootId, DirectoryId, Incarnation } from '../base/ids.js';
import {
  CUT_BYTES,
  CUT_MS,
  LOG_KEEP_BYTES,
  LOG_KEEP_TRANSFER_BYTES,
  MAX_APPEND_BYTES,
  MAX_HELD_CALLS,
  MAX_INFLIGHT_APPENDS,
  MAX_INFLIGHT_BYTES,
  MAX_TTL_MS,
  MAX_UNAPPLIED_ENTRIES,
  MAX_UNCOMMITTED_BYTES,
  STATE_LIMITS,
  TIMED_PER_TICK,
  WAITER_GRACE_MS,
  WATCH_LIMITS,
} from '../base/limits.js';
import { findRequest } from '../lease/lookup.js';
import type { StateLimits } from '../lease/types.js';
import { createForming, FORMAT } from '../replica/forming.js';
import { limitsAlarm } from '../replica/limits.js';
import type { Store } from '../replica/ports.js';
import { createReplica } from '../replica/replica.js';
import type { Replica } from '../replica/replica.js';
import type { Event, Genesis, Hello, ReplicaOptions } from '../replica/types.js';
import { CallTable } from '../server/call-table.js';
import { createClientServer } from '../server/client-server.js';
import type { ClientServer } from '../server/client-server.js';
import { WatchTable } from '../server/watch-table.js';
import { DirectoryRefused } from '../storage/refused.js';
import type { Transport } from '../transport/transport.js';
import { commandCodec } from '../wire/command.js';
import type { NodeConfig } from './config.js';
import { createExecutor } from './executor.js';
import type { Executor } from './executor.js';
import { FormingDriver } from './forming.js';
import type { Log } from './log.js';
import { systemPorts } from './ports.js';
import type { NodePorts } from './ports.js';
import { startTicker } from './ticker.js';
import { UsageFaults } from './usage-faults.js';

/** How a node ended. */
export type Ending =
  | { readonly type: 'stopped' }
  /** The directory or the other members refuse it. */
  | { readonly type: 'refused'; readonly message: string }
  /** A write to the disk failed: nothing of this process may be trusted or answered any more. */
  | { readonly type: 'disk'; readonly error: Error }
  /** An assertion failed. */
  | { readonly type: 'defect'; readonly error: Error };

/** Open calls get this long when the node stops. */
const CLOSE_GRACE_MS = 500;
const DISK_LOOK_MS = 1_000;

/** See the head of the file. */
export class Node {
  readonly #config: NodeConfig;
  readonly #log: Log;
  readonly #end: (ending: Ending) => void;
  readonly #ports: NodePorts;
  readonly #boot = hexId() as BootId;
  readonly #calls = new CallTable();
  readonly #watches = new WatchTable();
  readonly #server: ClientServer;
  readonly #transport: Transport;
  #directory: DirectoryId | undefined;
  #forming: FormingDriver | undefined;
  #waitingFor: string[] = [];
  #store: Store | undefined;
  #replica: Replica | undefined;
  #executor: Executor | undefined;
  #timers: (() => void)[] = [];
  /** What is being opened: a stop waits for it, or ports and directory would be taken after they were given back. */
  #opening: Promise<void> = Promise.resolve();
  #stopping = false;
  /** The executor carries out nothing any more. */
  #failed = false;
  #clientPort: number | undefined;

  /** `end` is called once. `version` is shown by status. */
  constructor(
    config: NodeConfig,
    version: string,
    log: Log,
    end: (ending: Ending) => void,
    ports: NodePorts = systemPorts,
  ) {
    this.#config = config;
    this.#ports = ports;
    this.#log = log;
    let ended = false;
    this.#end = (ending) => {
      if (ended) return;
      ended = true;
      end(ending);
    };
    const limits = { minTtlMs: 3 * config.electionMaxMs, maxTtlMs: MAX_TTL_MS, defaultTtlMs: config.defaultTtlMs };
    const { nodeId: node, cluster } = config;
    this.#server = createClientServer(
      config.clientAddress,
      {
        node,
        cluster,
        version,
        limits,
        calls: this.#calls,
        watches: this.#watches,
        isWaiting: (request) => {
          const state = this.#replica?.context.lease;
          return state !== undefined && findRequest(state, request)?.type === 'waiting';
        },
        waitingFor: () => this.#waitingFor,
      },
      (error) => {
        if (error instanceof AssertionFailed) this.#end({ type: 'defect', error });
        else log.error('a call failed in an unexpected way', { error: String(error) });
      },
    );
    this.#transport = ports.createTransport({
      node,
      peers: addressesOf(config),
      bind: config.peerAddress,
      listener: (event) => this.#executor?.dispatch(event),
      onForm: (request) => this.#forming?.answer(request) ?? Promise.reject(new Error('this node is starting')),
      openSnapshot: () => {
        if (this.#store === undefined) throw new Error('a snapshot was asked for before the store was opened');
        return this.#store.openSnapshot();
      },
      log: (level, message, fields) => {
        log[level](message, fields);
      },
    });
  }

  /**
   * Listens and begins. Rejects with {@link UsageFaults} when a port is taken, with {@link DirectoryRefused} for the
   * directory. What else goes wrong is the node's ending, at a start as later.
   */
  async start(): Promise<void> {
    this.#opening = this.#open();
    try {
      await this.#opening;
    } catch (error) {
      if (error instanceof UsageFaults || error instanceof DirectoryRefused) throw error;
      this.#end(
        error instanceof AssertionFailed
          ? { type: 'defect', error }
          : { type: 'disk', error: error instanceof Error ? error : new Error(textOf(error)) },
      );
    }
  }

  async #open(): Promise<void> {
    const { dataDir: path, cluster, nodeId: node } = this.#config;
    const expected = { cluster, node };
    const found = await this.#ports.inspectDirectory(path, expected);
    await this.#listen();
    if (found.type === 'member') this.#store = await this.#ports.openStore(path, expected);
    this.#directory =
      found.type === 'member' ? found.identity.directory : await this.#ports.prepareDirectory(path, expected);
    this.#forming = this.#form(this.#directory, this.#store?.loaded.genesis);
    this.#forming.start();
  }

  /** The port at which clients are served; undefined before it is bound. */
  get clientPort(): number | undefined {
    return this.#clientPort;
  }

  /** Hands over, answers what it took, closes. The ending is `stopped`. */
  stop(): void {
    if (this.#stopping) return;
    this.#stopping = true;
    this.#log.info('stopping');
    this.#server.setServing(false);
    if (this.#executor === undefined || this.#failed) this.#close();
    else this.#executor.dispatch({ type: 'stop' });
  }

  async #listen(): Promise<void> {
    const results = await Promise.allSettled([this.#server.listen(), this.#transport.listen()]);
    const [clients] = results;
    if (clients.status === 'fulfilled') this.#clientPort = clients.value;
    const faults = results.flatMap((result) => (result.status === 'rejected' ? [textOf(result.reason)] : []));
    if (faults.length === 0) return;
    await Promise.all([this.#server.close(0), this.#transport.close()]);
    throw new UsageFaults('The node cannot listen', faults);
  }

  #form(directory: DirectoryId, genesis: Genesis | undefined): FormingDriver {
    const { cluster, nodeId: node, dataDir, form, floor, holdMs } = this.#config;
    const forming = createForming({
      self: { node, directory },
      boot: this.#boot,
      cluster,
      members: addressesOf(this.#config),
      form,
      floor: floor === 0 ? undefined : floor,
      holdMs,
      limits: limitsOf(this.#config),
      incarnation: hexId() as Incarnation,
      genesis,
    });
    return new FormingDriver(forming, {
      time: this.#ports.time,
      ask: (to, request, timeoutMs) => this.#transport.ask(to, request, timeoutMs),
      store: (record) => {
        const accept = async (): Promise<void> => {
          await this.#ports.storeGenesis(dataDir, record, directory);
          this.#store = await this.#ports.openStore(dataDir, { cluster, node });
        };
        this.#opening = accept();
        return this.#opening;
      },
      formed: (record) => {
        this.#run(record, directory);
      },
      refused: (message) => {
        this.#end({ type: 'refused', message });
      },
      failed: (error) => {
        this.#end({ type: 'disk', error: error instanceof Error ? error : new Error(textOf(error)) });
      },
      log: (message) => {
        this.#waitingFor = [message];
        this.#log.info(message);
      },
    });
  }

  #run(genesis: Genesis, directory: DirectoryId): void {
    const store = this.#store;
    if (store === undefined || this.#stopping) return;
    const { cluster, nodeId: node, tickMs } = this.#config;
    this.#waitingFor = [];
    this.#warnOfMembers(genesis);
    const otherLimits = limitsAlarm(limitsOf(this.#config), store.loaded.summary.limits);
    if (otherLimits !== undefined) this.#log.warn(otherLimits);
    const replica = createReplica(this.#replicaOptions(directory), commandCodec, store.loaded);
    const executor = createExecutor(replica, {
      store,
      peers: this.#transport,
      clients: this.#calls,
      time: this.#ports.time,
      watchers: this.#watches,
      schedule: (turn) => {
        setImmediate(turn);
      },
      observer: {
        log: ({ level, message, fields, detail }) => {
          if (level === 'audit') this.#log.audit(message, fields, detail);
          else this.#log[level](message, fields);
        },
        serving: ({ serving, leader }) => {
          this.#log.info(serving ? 'serving' : 'not serving', leader === undefined ? {} : { leader });
          this.#server.setServing(serving);
        },
        stopped: () => {
          this.#close();
        },
        failed: (cause, error) => {
          this.#failed = true;
          this.#end({ type: cause === 'disk' ? 'disk' : 'defect', error });
        },
      },
    });
    this.#replica = replica;
    this.#executor = executor;
    const dispatch = (event: Event): void => {
      executor.dispatch(event);
    };
    const hello: Hello = {
      cluster,
      incarnation: genesis.incarnation,
      node,
      directory,
      boot: this.#boot,
      format: FORMAT,
    };
    this.#transport.activate(hello);
    this.#calls.attach(dispatch);
    this.#ports.runs(replica, dispatch);
    this.#watches.attach(dispatch);
    this.#timers.push(
      startTicker(tickMs, () => performance.now(), dispatch),
      this.#watchDisk(dispatch),
    );
    const { base } = genesis.history;
    this.#log.audit('member of a history', { cluster, incarnation: genesis.incarnation, base, directory });
  }

  /** The member list of a history is in its record; the configuration only says where they are. */
  #warnOfMembers(genesis: Genesis): void {
    const configured = this.#config.members.map(({ nodeId }) => nodeId).sort();
    const recorded = genesis.members.map(({ node }) => node).sort();
    if (configured.join(' ') === recorded.join(' ')) return;
    this.#log.warn('the configuration names other members than the history has; those of the history count', {
      configured: configured.join(' '),
      history: recorded.join(' '),
    });
  }

  #watchDisk(dispatch: (event: Event) => void): () => void {
    const look = (): void => {
      this.#ports.diskFree(this.#config.dataDir).then(
        (bytes) => {
          dispatch({ type: 'diskFree', bytes });
        },
        (error: unknown) => {
          this.#log.warn('the free space of the data directory cannot be read', { error: textOf(error) });
        },
      );
    };
    look();
    const timer = setInterval(look, DISK_LOOK_MS);
    return () => {
      clearInterval(timer);
    };
  }

  #close(): void {
    const closing = async (): Promise<void> => {
      await Promise.allSettled([this.#opening]);
      this.#forming?.stop();
      await this.#server.close(CLOSE_GRACE_MS);
      await this.#transport.close();
      for (const stop of this.#timers) stop();
      this.#executor?.halt();
      await this.#store?.close();
      this.#end({ type: 'stopped' });
    };
    closing().catch((error: unknown) => {
      this.#end({ type: 'disk', error: error instanceof Error ? error : new Error(textOf(error)) });
    });
  }

  #replicaOptions(directory: DirectoryId): ReplicaOptions {
    const { nodeId: node, heartbeatMs, electionMinMs, electionMaxMs, tickMs, diskFloorBytes } = this.#config;
    const { auditGrants, auditReleases } = this.#config;
    return {
      self: { node, directory },
      addresses: addressesOf(this.#config),
      heartbeatMs,
      electionMinMs,
      electionMaxMs,
      tickMs,
      diskFloorBytes,
      maxAppendBytes: MAX_APPEND_BYTES,
      maxInflightAppends: MAX_INFLIGHT_APPENDS,
      maxInflightBytes: MAX_INFLIGHT_BYTES,
      maxUncommittedBytes: MAX_UNCOMMITTED_BYTES,
      maxUnappliedEntries: MAX_UNAPPLIED_ENTRIES,
      timedPerTick: TIMED_PER_TICK,
      cutBytes: CUT_BYTES,
      cutMs: CUT_MS,
      logKeepBytes: LOG_KEEP_BYTES,
      logKeepTransferBytes: LOG_KEEP_TRANSFER_BYTES,
      maxHeldCalls: MAX_HELD_CALLS,
      waiterGraceMs: WAITER_GRACE_MS,
      limits: limitsOf(this.#config),
      auditGrants,
      auditReleases,
      watch: WATCH_LIMITS,
      seed: randomBytes(4).readUInt32LE(),
    };
  }
}

function hexId(): string {
  return randomBytes(16).toString('hex');
}

function addressesOf({ members }: NodeConfig): ReplicaOptions['addresses'] {
  return members.map(({ nodeId, peerAddress }) => ({ node: nodeId, peerAddress }));
}

/** The limits with which a new history of this configuration begins. */
function limitsOf({ queueLimit, leasesPerPrincipal, waitersPerPrincipal, prefixQuotas }: NodeConfig): StateLimits {
  return { ...STATE_LIMITS, queue: queueLimit, leasesPerPrincipal, waitersPerPrincipal, prefixes: prefixQuotas };
}

function textOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
