/** The watchers of a memory cluster: streams that are read at once, or not at all. */
import type { Header } from '../../src/base/api.js';
import type { Failure } from '../../src/base/errors.js';
import type { Revision } from '../../src/base/revision.js';
import type { ChangeView, WatchNews } from '../../src/base/watch.js';
import type { WatchEffect } from '../../src/replica/ports.js';
import type { Event, WatchId } from '../../src/replica/types.js';

/** One stream. */
export interface MemoryWatch {
  readonly id: WatchId;
  readonly node: string;
  /** Every message, oldest first. */
  readonly messages: { readonly header: Header; readonly news: WatchNews }[];
  failure: Failure | undefined;
  /** Messages are taken as they come; one that was sent while it was false is taken once it is true again. */
  reading: boolean;
  /** A message was sent and not taken yet. */
  waiting: boolean;
}

/** See the head of the file. */
export class MemoryWatches {
  readonly #open = new Map<WatchId, MemoryWatch>();
  readonly #dispatch: (node: string, event: Event) => void;
  #last = 0;

  constructor(dispatch: (node: string, event: Event) => void) {
    this.#dispatch = dispatch;
  }

  open(node: string, prefix: string, from: number, principal = 'addr:watcher'): MemoryWatch {
    this.#last++;
    const watch: MemoryWatch = {
      id: this.#last,
      node,
      messages: [],
      failure: undefined,
      reading: true,
      waiting: false,
    };
    this.#open.set(watch.id, watch);
    this.#dispatch(node, {
      type: 'watch',
      id: watch.id,
      principal: { name: principal, authenticated: false },
      call: { prefix, startRevision: from as Revision },
    });
    return watch;
  }

  perform(node: string, effect: WatchEffect): void {
    const watch = this.#open.get(effect.id);
    if (watch === undefined) return;
    if (watch.node !== node) throw new Error(`${node} serves watch ${effect.id} of ${watch.node}`);
    if (watch.failure !== undefined || watch.messages.at(-1)?.news.type === 'compacted')
      throw new Error(`watch ${effect.id} goes on after its end`);
    if (effect.type === 'watchFailed') {
      watch.failure = effect.failure;
      this.close(watch);
      return;
    }
    if (watch.waiting) throw new Error(`watch ${effect.id} was sent a message before it could take one`);
    watch.messages.push({ header: effect.header, news: effect.news });
    watch.waiting = true;
    if (effect.news.type === 'compacted') this.close(watch);
    else if (watch.reading) this.#take(watch);
  }

  /** Begins or stops to read. */
  read(watch: MemoryWatch, reading: boolean): void {
    watch.reading = reading;
    if (reading && watch.waiting) this.#take(watch);
  }

  /** Its reader goes away. */
  close(watch: MemoryWatch): void {
    if (this.#open.delete(watch.id)) this.#dispatch(watch.node, { type: 'watchClosed', id: watch.id });
  }

  /** The node has ended: its streams are gone. */
  nodeGone(node: string): void {
    for (const watch of [...this.#open.values()]) if (watch.node === node) this.#open.delete(watch.id);
  }

  #take(watch: MemoryWatch): void {
    watch.waiting = false;
    this.#dispatch(watch.node, { type: 'watchReady', id: watch.id });
  }
}

/** All changes that a watch was told, in order. */
export function changesSeen({ messages }: MemoryWatch): ChangeView[] {
  return messages.flatMap(({ news }) => (news.type === 'events' ? news.events : []));
}

/** Up to where a watcher knows everything; 0 before the first message. */
export function seenUpTo({ messages }: MemoryWatch): number {
  return messages.at(-1)?.header.revision ?? 0;
}

/** A change in one line, for comparisons. */
export function inWords(change: ChangeView): string {
  switch (change.type) {
    case 'granted':
      return `${change.revision} granted ${change.lease.domain} to ${change.lease.holder}`;
    case 'ended': {
      const { lease, reason } = change.ended;
      return `${change.revision} ended ${lease.domain} ${lease.token} ${reason}`;
    }
    case 'queueChanged':
      return `${change.revision} queue ${change.domain} ${change.queueLength}`;
  }
}
