/** Endpoints in memory that can be watched: what is said there is up to the test. */
import type { Header } from '../../src/base/api.js';
import type { Domain, Incarnation, NodeId } from '../../src/base/ids.js';
import type { Revision } from '../../src/base/revision.js';
import type { ChangeView, WatchCall, WatchNews } from '../../src/base/watch.js';
import type { OpenedWatch, WatchEnd, WatchListener } from '../../src/client/watch-channel.js';

/** One watch that arrived at an endpoint. */
export class FakeWatch implements OpenedWatch {
  readonly endpoint: string;
  readonly call: WatchCall;
  readonly #listener: WatchListener;
  paused = false;
  closed = false;

  constructor(endpoint: string, call: WatchCall, listener: WatchListener) {
    this.endpoint = endpoint;
    this.call = call;
    this.#listener = listener;
  }

  /** All is known up to `revision`. */
  say(revision: number, news: WatchNews | undefined, more: Partial<Header> = {}): void {
    if (this.closed) return;
    const header: Header = {
      cluster: 'test',
      incarnation: 'a'.repeat(32) as Incarnation,
      revision: revision as Revision,
      node: 'n1' as NodeId,
      leader: 'n1' as NodeId,
      ...more,
    };
    this.#listener.message({ header, news });
  }

  progress(revision: number, more: Partial<Header> = {}): void {
    this.say(revision, { type: 'progress' }, more);
  }

  /** Queues of that length at these revisions, all known up to the last or to `complete`. */
  changes(revisions: readonly number[], complete = revisions.at(-1) ?? 0): void {
    this.say(complete, { type: 'events', events: revisions.map((revision) => queueChanged(revision)) });
  }

  end(end: WatchEnd): void {
    if (!this.closed) this.#listener.end(end);
  }

  pause(): void {
    this.paused = true;
  }

  resume(): void {
    this.paused = false;
  }

  close(): void {
    this.closed = true;
  }
}

/** See the head of the file. */
export class FakeWatches {
  readonly arrived: FakeWatch[] = [];
  /** Called in a later turn for each watch that arrives. */
  answer: (watch: FakeWatch) => void = () => undefined;

  readonly open = (endpoint: string, call: WatchCall, listener: WatchListener): OpenedWatch => {
    const watch = new FakeWatch(endpoint, call, listener);
    this.arrived.push(watch);
    queueMicrotask(() => {
      this.answer(watch);
    });
    return watch;
  };

  /** The newest watch. */
  get last(): FakeWatch {
    const found = this.arrived.at(-1);
    if (found === undefined) throw new Error('nobody watches');
    return found;
  }
}

/** A change that says nothing but its revision. */
export function queueChanged(revision: number): ChangeView {
  return {
    revision: revision as Revision,
    type: 'queueChanged',
    domain: 'd' as Domain,
    queueLength: revision % 7,
  };
}
