/**
 * One member, alone in its cluster, driven by hand: nothing but the replica and its state lives here, so what the heap
 * gains is theirs. Needs `--expose-gc`. Arguments: what to do, how often in all, after how often the heap is first looked
 * at, how many finished requests are kept, how many bytes of log
 * and of changes for watchers. Prints the bytes in use at both moments as JSON.
 */
import type { AcquireCall, Call } from '../../src/base/api.js';
import type { DirectoryId, Domain, Incarnation, NodeId, RequestId } from '../../src/base/ids.js';
import { STATE_LIMITS, WATCH_LIMITS } from '../../src/base/limits.js';
import { ZERO_REVISION } from '../../src/base/revision.js';
import type { Revision } from '../../src/base/revision.js';
import { createReplica } from '../../src/replica/replica.js';
import type { CallResult, Event, Genesis } from '../../src/replica/types.js';
import { commandCodec } from '../../src/wire/command.js';
import { defaultOptions } from '../support/replica-options.js';

const [kind = '', all = '0', early = '0', finished = '0', logKeep = '0'] = process.argv.slice(2);
const gc = (globalThis as { gc?: () => void }).gc;
if (gc === undefined) throw new Error('run with --expose-gc');

const BATCH = 200;
const self = { node: 'n1' as NodeId, directory: 'a'.repeat(32) as DirectoryId };
const genesis: Genesis = {
  incarnation: 'b'.repeat(32) as Incarnation,
  cluster: 'heap',
  history: { base: 1_796_000_000_000_000 as Revision, start: 0 },
  startTerm: 0,
  holdMs: 0,
  limits: { ...STATE_LIMITS, finishedRequests: Number(finished) },
  members: [self],
  stateDigest: '',
};
const start = { index: 0, term: 0 };
const configuration = { voters: [self], outgoing: [], learners: [] };
const replica = createReplica(
  {
    ...defaultOptions(self, genesis),
    logKeepBytes: Number(logKeep),
    watch: { ...WATCH_LIMITS, ringBytes: Number(logKeep) },
    seed: 1,
  },
  commandCodec,
  {
    genesis,
    hard: { term: 0, vote: undefined },
    anchor: start,
    entries: [],
    snapshot: { ...start, configuration, configurationIndex: 0 },
    summary: { forgotten: ZERO_REVISION, holding: false, limits: genesis.limits },
    records: [],
  },
);

let nowMs = 1_000;
let nextId = 1;
const results = new Map<number, CallResult>();

/** Hands over `events`, and what the disk says to what follows from them, until nothing follows. */
function run(...events: Event[]): void {
  let inbox = events;
  while (inbox.length > 0) {
    const next: Event[] = [];
    for (const effect of replica.step({ nowMs, unixMs: 1_796_000_000_000 + nowMs }, inbox)) {
      if (effect.type === 'persist') next.push({ type: 'written', seq: effect.write.seq });
      else if (effect.type === 'cut') next.push({ type: 'cutWritten', index: effect.cut.meta.index });
      else if (effect.type === 'answer') results.set(effect.id, effect.result);
    }
    inbox = next;
  }
}

function tick(ms: number): void {
  nowMs += ms;
  run({ type: 'tick' });
}

/** Makes the calls together; what each came to, in order, once all are answered. */
function make(calls: readonly Call[]): CallResult[] {
  const principal = { name: 'addr:heap', authenticated: false };
  const first = nextId;
  nextId += calls.length;
  run(...calls.map((call, at): Event => ({ type: 'call', id: first + at, principal, timeoutMs: 10_000, call })));
  for (let ticks = 0; results.size < calls.length; ticks++) {
    if (ticks > 100) throw new Error(`only ${results.size} of ${calls.length} calls are answered`);
    tick(10);
  }
  const found = calls.map((_, at) => results.get(first + at));
  results.clear();
  return found.map((result) => {
    if (result?.type !== 'answer') throw new Error(`a call came to ${JSON.stringify(result)}`);
    return result;
  });
}

let made = 0;
function acquireOf(domain: string, waitMs = 0): AcquireCall {
  made++;
  const requestId = `00000000-0000-4000-8000-${made.toString(16).padStart(12, '0')}` as RequestId;
  const asks = { domain: domain as Domain, requestId, holder: 'heap', ttlMs: 86_400_000, waitMs };
  return { type: 'acquire', ...asks, metadata: [], coolDownMs: 0, slots: 1, seenRevision: ZERO_REVISION };
}

/** The outcome of each acquire must be this one. */
function acquireAll(calls: readonly AcquireCall[], wanted: string): Revision[] {
  return make(calls).map((result) => {
    const outcome = result.type === 'answer' && result.answer.type === 'acquire' ? result.answer.outcome : undefined;
    const got = outcome?.type === 'notGranted' ? outcome.reason : outcome?.type;
    if (got !== wanted) throw new Error(`an acquire came to ${got ?? 'nothing'}, not to ${wanted}`);
    return outcome?.type === 'granted' ? outcome.lease.token : ZERO_REVISION;
  });
}

const KINDS: Readonly<Record<string, (from: number) => void>> = {
  /** Tries that find the domain held. */
  failed: () => {
    acquireAll(
      Array.from({ length: BATCH }, () => acquireOf('held')),
      'held',
    );
  },
  /** Waiters whose wait is over. */
  timedOut: () => {
    acquireAll(
      Array.from({ length: BATCH }, () => acquireOf('held', 10)),
      'wait_over',
    );
  },
  /** Domains that are held once and never again. */
  dropped: (from) => {
    const acquires = Array.from({ length: BATCH }, (_, at) => acquireOf(`dropped/${from + at}`));
    const tokens = acquireAll(acquires, 'granted');
    make(
      acquires.map(({ domain }, at) => ({ type: 'release', lease: { domain, token: tokens[at] ?? ZERO_REVISION } })),
    );
  },
};

const once = KINDS[kind];
if (once === undefined) throw new Error(`${kind} is none of ${Object.keys(KINDS).join(', ')}`);
while (replica.context.leadership?.ready === undefined) tick(10);
acquireAll([acquireOf('held')], 'granted');

const inUse = (): number => {
  gc();
  gc();
  return process.memoryUsage().heapUsed;
};
let before: number | undefined;
for (let done = 0; done < Number(all); done += BATCH) {
  if (done >= Number(early)) before ??= inUse();
  once(done);
  // The clock goes on, so that cuts come when they are due.
  tick(10);
}
console.log(JSON.stringify({ before, after: inUse() }));
