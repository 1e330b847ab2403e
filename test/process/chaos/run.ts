/** One chaos run: faults for a while, then everything is healed and has to work again. */
import { setTimeout as pause } from 'node:timers/promises';
import { randomUUID } from 'node:crypto';
import type { Domain, RequestId } from '../../../src/base/ids.js';
import { createRandom, nextInt, nextUint32 } from '../../../src/base/random.js';
import type { Random } from '../../../src/base/random.js';
import { ZERO_REVISION } from '../../../src/base/revision.js';
import { until } from '../cluster.js';
import { CLIENT_FAULTS, CONNECTION_FAULTS } from './client-faults.js';
import { now } from './clock.js';
import { Deck } from './deck.js';
import type { Fault, FaultPorts } from './fault.js';
import { Judge } from './judge.js';
import type { Counts } from './judge.js';
import { NETWORK_FAULTS } from './network-faults.js';
import { DISK_FAULTS, NODE_FAULTS } from './node-faults.js';
import { Stage } from './stage.js';
import type { StageSettings } from './stage.js';
import { PLAIN } from '../../support/answers.js';

/**
 * After everything is healed the cluster gets this long to serve again, its clients to end what they do, and then its
 * states to be equal. Seconds are enough, but for a machine that is busy with other things.
 */
const HEALED_MS = 120_000;
const LOOK_MS = 2_000;
const REPORT_MS = 30_000;

/** What a run is asked for. */
export interface ChaosSettings extends StageSettings {
  /** How long faults are made. */
  readonly ms: number;
  /** Every so many milliseconds a line. */
  readonly print: (line: string) => void;
  /** Aborted by the caller or by the run itself: no more faults. */
  readonly end: AbortController;
}

/** What came of it. */
export interface ChaosResult {
  readonly violations: readonly string[];
  readonly counts: Counts;
  /** How often each fault was made; zero for those that never were. */
  readonly faults: ReadonlyMap<string, number>;
  /** What could not be made on this machine, and why. */
  readonly skipped: readonly string[];
  /** Where the traces are; undefined when they were not worth keeping. */
  readonly kept: string | undefined;
  /** With start and end. */
  readonly tookMs: number;
}

/** Faults of which one is made at a time. */
interface Lane {
  readonly faults: readonly Fault[];
  /** The longest time of peace between two, in milliseconds. */
  readonly restMs: number;
}

/** Runs it. Everything that it starts is ended, whatever happens. The first violation ends it. */
export async function runChaos(settings: ChaosSettings): Promise<ChaosResult> {
  const startedAt = now();
  const stage = await Stage.create(settings);
  const judge = new Judge();
  const faults = new Map<string, number>();
  const skipped = typeof stage.disk === 'string' ? [`disk full: ${stage.disk}`] : [];
  const wrong = (): string[] => [...judge.violations, ...stage.violations()];
  const { end } = settings;
  let timer: ReturnType<typeof setTimeout> | undefined;
  /** What fails here is a violation too, and nothing goes on beside it. True when it did not. */
  const guarded = async (work: Promise<void>): Promise<boolean> => {
    try {
      await work;
      return true;
    } catch (error) {
      judge.violations.add(error instanceof Error ? (error.stack ?? error.message) : String(error));
      end.abort();
      return false;
    }
  };
  try {
    await guarded(stage.start());
    // Not AbortSignal.timeout and .any: Node 20 may collect them as garbage before they abort.
    timer = setTimeout(() => {
      end.abort();
    }, settings.ms);
    const random = createRandom(settings.seed);
    const lanes: readonly Lane[] = [
      { faults: [...NODE_FAULTS, ...(typeof stage.disk === 'string' ? [] : DISK_FAULTS)], restMs: 5_000 },
      { faults: NETWORK_FAULTS, restMs: 5_000 },
      // Leases change hands while the cluster is well and their holders are not.
      { faults: CLIENT_FAULTS, restMs: 1_500 },
      { faults: CONNECTION_FAULTS, restMs: 3_000 },
    ];
    for (const { name } of lanes.flatMap((lane) => lane.faults)) faults.set(name, 0);
    const striking = lanes.map((lane) =>
      guarded(strike(stage, lane, createRandom(nextUint32(random)), faults, end.signal)),
    );
    const over = new AbortController();
    const look = (): void => {
      if (wrong().length > 0) end.abort();
    };
    const watching = guarded(watch(stage, judge, settings.print, look, over.signal));
    const well = await Promise.all(striking);
    if (well.every((each) => each) && wrong().length === 0) await guarded(heal(stage));
    over.abort();
    await watching;
    for (const event of stage.tail.read(true)) judge.add(event);
    judge.look(Infinity);
  } finally {
    clearTimeout(timer);
    await stage.close(wrong().length > 0);
  }
  const violations = wrong();
  const kept = violations.length > 0 ? stage.home : undefined;
  return { violations, counts: judge.counts, faults, skipped, kept, tookMs: now() - startedAt };
}

/** Ends all faults; then every node serves, clients end well, and all states are equal. */
async function heal(stage: Stage): Promise<void> {
  stage.tell('everything is healed');
  stage.nodes.heal();
  await untilServing(stage);
  await Promise.all(stage.workers.map((worker) => worker.end(HEALED_MS)));
  await stage.nodes.untilEqual(HEALED_MS);
}

/** One fault after another, with times of peace between, until the end. */
async function strike(
  stage: Stage,
  { faults, restMs }: Lane,
  random: Random,
  counts: Map<string, number>,
  end: AbortSignal,
): Promise<void> {
  const deck = new Deck(faults, random);
  const wait = async (from: Random, lowMs: number, highMs: number): Promise<void> => {
    await pause(nextInt(from, lowMs, highMs), undefined, { signal: end }).catch(() => undefined);
  };
  for (;;) {
    await wait(random, 500, restMs);
    if (end.aborted) return;
    const { name, strike: act } = deck.next();
    // Each fault draws from a stream of its own: what one of them met does not change the next.
    const own = createRandom(nextUint32(random));
    const ports: FaultPorts = { stage, random: own, pause: (lowMs, highMs) => wait(own, lowMs, highMs) };
    stage.tell(`${name} …`);
    if (await act(ports)) counts.set(name, (counts.get(name) ?? 0) + 1);
    stage.tell(`${name} is over`);
  }
}

/** Reads what clients and nodes say, and judges it, until it is told to end. */
async function watch(
  stage: Stage,
  judge: Judge,
  print: (line: string) => void,
  look: () => void,
  over: AbortSignal,
): Promise<void> {
  const startedAt = now();
  let reportAt = startedAt + REPORT_MS;
  while (!over.aborted) {
    await pause(LOOK_MS, undefined, { signal: over }).catch(() => undefined);
    for (const event of stage.tail.read()) judge.add(event);
    judge.look(now());
    await stage.nodes.compareHashes();
    look();
    if (now() < reportAt) continue;
    reportAt += REPORT_MS;
    const { calls, grants, claims, writes, stale } = judge.counts;
    const wrong = judge.violations.size + stage.violations().length;
    print(
      `${Math.round((now() - startedAt) / 1_000)} s: ${calls} calls, ${grants} grants, ${claims} claims, ${writes} writes, ${stale} stale writes refused, ${wrong} violations`,
    );
  }
}

/** Every node takes an acquire of a domain of its own and grants it. */
async function untilServing(stage: Stage): Promise<void> {
  for (const node of stage.nodes.all) {
    const requestId = randomUUID() as RequestId;
    const domain = `healed/${node.name}` as Domain;
    const call = { type: 'acquire', domain, requestId, holder: 'run', ttlMs: 3_000, metadata: [], ...PLAIN } as const;
    await until(
      `${node.name} to grant again after everything was healed`,
      async () => {
        const sent = stage.nodes.cluster.call(node, { ...call, seenRevision: ZERO_REVISION }, 5_000);
        return await sent.then(({ answer }) => answer.outcome.type === 'granted').catch(() => false);
      },
      HEALED_MS,
    );
  }
}
