/**
 * Random lives of a disk's processes, and what each next one must find: the state after some write that is no older
 * than the last one reported.
 */
import { isDeepStrictEqual } from 'node:util';
import type { Domain } from '../../../src/base/ids.js';
import { nextInt, type Random } from '../../../src/base/random.js';
import type { Entry, HardState, LogWrite } from '../../../src/raft/types.js';
import type { Store } from '../../../src/replica/ports.js';
import type { Loaded } from '../../../src/replica/types.js';
import { C, cutAt, domainRecord, entries, hard, logWrite, meta, readChunks } from '../../storage/fixtures.js';

/** What lies on the disk after a write. Never changed. */
interface State {
  readonly hard: HardState;
  /** Before the first entry: where Genesis or an installed snapshot begins. */
  readonly base: { readonly index: number; readonly term: number };
  readonly entries: readonly Entry[];
  readonly applied: number;
  readonly records: ReadonlyMap<string, number>;
  /** Log below this may be gone. */
  readonly keepFrom: number;
}

const FIRST: State = {
  hard: hard(0),
  base: { index: 0, term: 0 },
  entries: [],
  applied: 0,
  records: new Map(),
  keepFrom: 1,
};

/** What a member does to its store, at random, and what may be found afterwards. */
export class Life {
  /** The process's store has reported a failure. */
  failed = false;
  readonly #random: Random;
  /** After each job of the process; the first one was found at its start. */
  #states: State[] = [FIRST];
  /** Which job the log writes are, in their order, and the cuts. */
  #writes: number[] = [];
  #cuts: { readonly index: number; readonly job: number }[] = [];
  /** The last job that was reported. */
  #reported = 0;
  #transfer = 0;

  constructor(random: Random) {
    this.#random = random;
  }

  /** A process has opened the store: throws unless it found what it must. */
  started(store: Store): void {
    const { loaded } = store;
    const possible = this.#states.slice(this.#reported);
    const found = possible.findLast((state) => fits(state, loaded));
    if (found === undefined) {
      throw new Error(`found ${JSON.stringify(shown(loaded))} instead of ${JSON.stringify(possible.map(shownState))}`);
    }
    this.#states = [found];
    this.#reported = 0;
    this.#writes = [];
    this.#cuts = [];
    this.failed = false;
    store.listen({
      written: (seq) => {
        this.#reported = this.#writes[seq - 1] ?? Infinity;
      },
      cutWritten: (index) => {
        const cut = this.#cuts.find((candidate) => candidate.index === index && candidate.job > this.#reported);
        this.#reported = cut?.job ?? Infinity;
      },
      staged: () => undefined,
      failed: () => {
        this.failed = true;
      },
    });
  }

  /** Submits something. */
  async act(store: Store): Promise<void> {
    switch (nextInt(this.#random, 0, 9)) {
      case 0:
      case 1:
        this.#truncate(store);
        return;
      case 2:
      case 3:
        this.#cut(store);
        return;
      case 4:
        await this.#install(store);
        return;
      default:
        this.#append(store);
    }
  }

  get #now(): State {
    return this.#states.at(-1) ?? FIRST;
  }

  #append(store: Store): void {
    const { hard: old } = this.#now;
    const newTerm = nextInt(this.#random, 0, 3) === 0;
    const votes = nextInt(this.#random, 0, 2) === 0;
    const { term } = newTerm ? this.#newTerm() : old;
    const vote = votes ? C : newTerm ? undefined : old.vote;
    this.#write(store, {}, nextInt(this.#random, 0, 4), old.vote !== undefined && !newTerm ? old : hard(term, vote));
  }

  #truncate(store: Store): void {
    const { applied } = this.#now;
    const last = lastOf(this.#now);
    const cutFrom = Math.max(applied + 1, last - nextInt(this.#random, 0, 6));
    this.#write(store, { cutFrom: Math.min(cutFrom, last + 1) }, nextInt(this.#random, 0, 3), this.#newTerm());
  }

  #cut(store: Store): void {
    const state = this.#now;
    const index = Math.max(state.applied, lastOf(state) - nextInt(this.#random, 0, 4));
    const domain = `d${nextInt(this.#random, 0, 9)}`;
    const records = new Map(state.records);
    const keepFrom = Math.max(state.keepFrom, index - nextInt(this.#random, 0, 6));
    const remove = records.delete(domain) ? [{ type: 'domain' as const, domain: domain as Domain }] : [];
    if (remove.length === 0) records.set(domain, index + 1);
    const put = remove.length === 0 ? [domainRecord(domain, index + 1)] : [];
    this.#cuts.push({ index, job: this.#states.length });
    this.#states.push({ ...state, applied: index, records, keepFrom });
    store.cut(cutAt(index, termAt(state, index), { put, remove, keepFrom }));
  }

  /** The member's own durable table comes back to it as somebody's snapshot, at a later index of another log. */
  async #install(store: Store): Promise<void> {
    const chunks = await readChunks(store.openSnapshot(), 300, ++this.#transfer);
    const source = chunks.flatMap((chunk) => chunk.records);
    const state = this.#now;
    const index = Math.max(state.applied + 1, lastOf(state) + nextInt(this.#random, -4, 3));
    const base = { index, term: state.hard.term };
    for (const chunk of chunks) {
      this.#states.push(state);
      store.stage({ ...chunk, meta: meta(base.index, base.term) });
    }
    const records = new Map<string, number>();
    for (const record of source) if (record.type === 'domain') records.set(record.domain, record.lease.token);
    const installed = { ...state, base, entries: [], applied: base.index, records, keepFrom: base.index + 1 };
    this.#submit(store, installed, [], { install: meta(base.index, base.term) });
    // One that was on its way meanwhile is dropped: it is of the table that was replaced (S4.2).
    if (nextInt(this.#random, 0, 2) === 0) store.cut(cutAt(index - 1, 0, { put: [domainRecord('stale', 1)] }));
  }

  #newTerm(): HardState {
    return hard(this.#now.hard.term + 1);
  }

  #write(store: Store, { cutFrom }: { readonly cutFrom?: number }, count: number, next: HardState): void {
    const state = this.#now;
    const kept = state.entries.filter((entry) => entry.index < (cutFrom ?? Infinity));
    const first = (kept.at(-1)?.index ?? state.base.index) + 1;
    const added = entries(first, first + count - 1, next.term);
    this.#submit(store, { ...state, hard: next, entries: [...kept, ...added] }, added, { cutFrom });
  }

  #submit(store: Store, after: State, added: readonly Entry[], more: Partial<LogWrite>): void {
    this.#writes.push(this.#states.length);
    this.#states.push(after);
    store.write(logWrite(this.#writes.length, after.hard.term, added, { ...more, hard: after.hard }));
  }
}

function lastOf({ base, entries: log }: State): number {
  return log.at(-1)?.index ?? base.index;
}

function termAt({ base, entries: log }: State, index: number): number {
  return log.find((entry) => entry.index === index)?.term ?? base.term;
}

function fits(state: State, loaded: Loaded): boolean {
  const { anchor, snapshot } = loaded;
  const records = [...state.records].sort().map(([domain, token]) => domainRecord(domain, token));
  return (
    isDeepStrictEqual(loaded.hard, state.hard) &&
    anchor.index >= state.base.index &&
    anchor.index <= Math.max(state.base.index, state.keepFrom - 1) &&
    anchor.term === termAt(state, anchor.index) &&
    isDeepStrictEqual(
      loaded.entries,
      state.entries.filter((entry) => entry.index > anchor.index),
    ) &&
    snapshot.index === state.applied &&
    isDeepStrictEqual(loaded.records, records)
  );
}

function shown({ hard: { term, vote }, anchor, entries: log, snapshot, records }: Loaded): unknown {
  return {
    term,
    vote: vote?.node,
    anchor,
    log: log.map((entry) => `${entry.index}@${entry.term}`).join(' '),
    applied: snapshot.index,
    records: records.map((record) => (record.type === 'domain' ? record.domain : record.type)).join(),
  };
}

function shownState({ hard: { term, vote }, base, entries: log, applied, records, keepFrom }: State): unknown {
  return {
    term,
    vote: vote?.node,
    base,
    keepFrom,
    log: log.map((entry) => `${entry.index}@${entry.term}`).join(' '),
    applied,
    records: [...records.keys()].sort().join(),
  };
}
