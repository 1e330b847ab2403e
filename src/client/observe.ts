/**
 * Observing: one watch after the other, wherever a node serves it, as one sequence of changes, each once and in order. It
 * goes on behind the last revision that is complete; what came of one that is not is forgotten and asked for again. What is
 * lost for good is an error, never silence.
 */
import type { Revision } from '../base/revision.js';
import type { ChangeView } from '../base/watch.js';
import type { ReadWatchMessage } from '../wire/public-watch.js';
import type { Timeline } from './clock.js';
import { ClosedError, CompactedError, OldClusterError, UnexpectedAnswerError } from './errors.js';
import type { ObserveSettings } from './options.js';
import { pause } from './pause.js';
import type { Surroundings } from './surroundings.js';
import { domainChange } from './views.js';
import type { DomainChange } from './views.js';
import type { OpenWatch } from './watch-channel.js';
import { WatchReader } from './watch-reader.js';
import type { Ending } from './watch-reader.js';

/** What {@link observe} tells: everything that happened up to `revision`. */
export interface Observation {
  /** Up to here all is known, in this observation and those before it; to go on later, observe from `revision + 1n`. */
  readonly revision: bigint;
  /** Oldest first. Empty: nothing happened; that is told at the start, and at least every ten seconds. */
  readonly changes: readonly DomainChange[];
}

/** What observing needs. */
export interface ObservePorts {
  readonly endpoints: readonly string[];
  readonly open: OpenWatch;
  readonly timeline: Timeline;
  readonly surroundings: Surroundings;
  /** For so long no node may serve, in milliseconds, before the observer is told. */
  readonly giveUpMs: number;
  /** Aborts when the client is closed. */
  readonly closed: AbortSignal;
}

/** Between two attempts, in milliseconds; drawn from half of it to one and a half. Doubled after each round in which all failed. */
const PAUSE_MS = 50;
const MAX_PAUSE_MS = 2_000;

/** Where an observation stands. */
interface Position {
  /** The first revision that is not known; 0 before the first message of an observation from now on. */
  next: Revision;
  /** The history to which `next` belongs; '' before the first message. */
  incarnation: string;
  /** Changes of `next` itself, which came without the rest of it. */
  parts: ChangeView[];
}

/** What came of one attempt: what ended it, and whether it brought anything. */
interface Attempt {
  readonly ending: Ending;
  readonly worked: boolean;
}

/** See the head of the file. Ends when `signal` aborts. Throws a `FencepostError`. */
export async function* observe(
  ports: ObservePorts,
  settings: ObserveSettings,
): AsyncGenerator<Observation, void, undefined> {
  const position: Position = { next: settings.from, incarnation: '', parts: [] };
  const trouble = new Trouble(ports);
  let turn = Math.floor(ports.surroundings.random() * ports.endpoints.length);
  while (!isOver(ports, settings)) {
    const endpoint = ports.endpoints[turn % ports.endpoints.length] ?? '';
    turn++;
    const { ending, worked } = yield* attempt(ports, settings, position, endpoint);
    if (ending.type === 'aborted') break;
    if (worked) trouble.over();
    trouble.add(endpoint, ending, position.next);
    await pause(ports.surroundings.timers, trouble.pauseMs(), ports.closed, settings.signal);
  }
  if (ports.closed.aborted) throw new ClosedError('The client was closed.', { outcome: 'not-done' });
}

/** Watches at one endpoint until that ends. */
async function* attempt(
  ports: ObservePorts,
  { prefix, signal }: ObserveSettings,
  position: Position,
  endpoint: string,
): AsyncGenerator<Observation, Attempt, undefined> {
  position.parts = [];
  const reader = new WatchReader(ports, endpoint, { prefix, startRevision: position.next }, signal);
  let worked = false;
  try {
    for (;;) {
      const got = await reader.next();
      if (got.type !== 'message') return { ending: got, worked };
      const ending = endingOf(got.message, position, endpoint);
      if (ending !== undefined) return { ending, worked };
      worked = true;
      const observation = take(got.message, position);
      if (observation !== undefined) yield observation;
    }
  } finally {
    reader.close();
  }
}

/** Why a message is not used, and is the last one of its endpoint. */
function endingOf({ header, news }: ReadWatchMessage, position: Position, endpoint: string): Ending | undefined {
  const { next, incarnation } = position;
  if (incarnation !== '' && header.incarnation !== incarnation) {
    if (header.revision < next) {
      const message = `${endpoint} (node ${header.node}) is of an older history of the cluster than the one observed`;
      return { type: 'failed', error: new OldClusterError(`${message}: stop that node.`) };
    }
    // What was observed is over: nothing says how its leases ended.
    const oldest = (header.revision + 1) as Revision;
    throw new CompactedError(BigInt(next), BigInt(oldest), 'the cluster was restored or formed anew');
  }
  if (news?.type === 'compacted') return { type: 'compacted', oldest: news.oldest };
  const events = news?.type === 'events' ? news.events : [];
  let before: number = next;
  const inOrder = events.every(({ revision }) => {
    const follows = revision >= before;
    before = revision;
    return follows;
  });
  if (inOrder && header.revision >= next - 1) return undefined;
  const error = new UnexpectedAnswerError(`${endpoint} told of changes out of order.`);
  return { type: 'failed', error };
}

/** What is known with this message; undefined while a revision is not complete. */
function take({ header, news }: ReadWatchMessage, position: Position): Observation | undefined {
  if (news === undefined || news.type === 'compacted') return undefined;
  position.incarnation = header.incarnation;
  position.next = (header.revision + 1) as Revision;
  const known = position.parts;
  if (news.type === 'events') known.push(...news.events);
  // Of a revision behind the header's there is more to come.
  const complete = known.findIndex(({ revision }) => revision > header.revision);
  position.parts = complete < 0 ? [] : known.splice(complete);
  return { revision: BigInt(header.revision), changes: known.map(domainChange) };
}

/** Attempts that failed since one last worked. */
class Trouble {
  readonly #ports: ObservePorts;
  readonly #compacted = new Map<string, Revision>();
  readonly #hopeless = new Set<string>();
  #attempts = 0;
  #sinceMs: number | undefined;

  constructor(ports: ObservePorts) {
    this.#ports = ports;
  }

  /** A node has served. */
  over(): void {
    this.#compacted.clear();
    this.#hopeless.clear();
    this.#attempts = 0;
    this.#sinceMs = undefined;
  }

  /** One more. Throws when there is no sense in going on. */
  add(endpoint: string, ending: Exclude<Ending, { type: 'aborted' }>, from: Revision): void {
    const nowMs = this.#ports.timeline.now().monotonicMs;
    this.#sinceMs ??= nowMs;
    this.#attempts++;
    const all = this.#ports.endpoints.length;
    if (ending.type === 'compacted') this.#compacted.set(endpoint, ending.oldest);
    // A node that was restarted has forgotten what another one still keeps: all are asked.
    if (this.#compacted.size > 0 && this.#attempts >= all) {
      const oldest = Math.min(...this.#compacted.values());
      throw new CompactedError(BigInt(from), BigInt(oldest), 'it happened too long ago');
    }
    if (ending.type !== 'failed') return;
    const { error } = ending;
    if (error.code === 'UNEXPECTED_ANSWER' || error.code === 'OLD_CLUSTER') this.#hopeless.add(endpoint);
    else if (!error.retryable) throw error;
    if (this.#hopeless.size === all || nowMs - this.#sinceMs >= this.#ports.giveUpMs) throw error;
  }

  /** How long to wait before the next attempt. */
  pauseMs(): number {
    const rounds = Math.floor(this.#attempts / this.#ports.endpoints.length);
    return Math.min(PAUSE_MS * 2 ** Math.min(rounds, 10), MAX_PAUSE_MS) * (0.5 + this.#ports.surroundings.random());
  }
}

function isOver({ closed }: ObservePorts, { signal }: ObserveSettings): boolean {
  return closed.aborted || signal?.aborted === true;
}
