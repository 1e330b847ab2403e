/**
 * Watch completeness: what a watcher is told is what was applied, each change once and in order, and nothing is left out
 * up to the revision that a message says is complete. GAP (a change was left out), EXTRA (one that never happened, or was
 * told before, or is not below the prefix), AHEAD (told of what nobody has applied), BACK (a header below an earlier
 * one), COMPACTED (that word for a start that lies within what it says is kept, or anything told after it) and SILENT
 * (nothing for longer than the API allows, to a watcher that reads at a node that runs).
 */
import type { ChangeView, WatchNews } from '../../../src/base/watch.js';
import type { Report } from '../observation.js';

/** The changes of a revision in the order of the API; undefined while nobody has applied it. */
export type AppliedChanges = (revision: number) => readonly ChangeView[] | undefined;

/** What one stream of one watcher says; a new one begins with every reconnection. */
export interface WatchStart {
  readonly name: string;
  readonly prefix: string;
  /** As asked for: 0 for "from now on". */
  readonly from: number;
  /** True time, in milliseconds. */
  readonly at: number;
}

/** `WatchProgress` comes at least every ten seconds, in true milliseconds. */
const PROMISED_MS = 10_000;

/** See the head of the file. One for each stream. */
export class WatchJudge {
  readonly #start: WatchStart;
  readonly #applied: AppliedChanges;
  readonly #report: Report;
  /** Everything up to here was told; undefined before the first message of a watch from now on. */
  #known: number | undefined;
  /** Changes of the revision behind `#known` that were told already. */
  #part = 0;
  #heardAt: number;
  #over = false;

  constructor(start: WatchStart, applied: AppliedChanges, report: Report) {
    this.#start = start;
    this.#applied = applied;
    this.#report = report;
    this.#known = start.from === 0 ? undefined : start.from - 1;
    this.#heardAt = start.at;
  }

  /** The revision behind which a later stream of this watcher has to begin. */
  get known(): number | undefined {
    return this.#known;
  }

  /** A message arrived; `revision` is that of its header. */
  told(at: number, revision: number, news: WatchNews): void {
    if (this.#over) this.#fault('COMPACTED', `${news.type} after the last message`);
    this.#heardAt = at;
    if (news.type === 'compacted') {
      this.#over = true;
      if (this.#known !== undefined && this.#known + 1 >= news.oldest)
        this.#fault('COMPACTED', `wants ${this.#known + 1}, which is not older than ${news.oldest}`);
      return;
    }
    const events = news.type === 'events' ? news.events : [];
    this.#known ??= (events[0]?.revision ?? revision + 1) - 1;
    if (revision < this.#known) {
      this.#fault('BACK', `is at ${this.#known} and told ${revision}`);
      return;
    }
    if (this.#applied(revision) === undefined) {
      this.#fault('AHEAD', `told that ${revision} is complete, which nobody has applied`);
      return;
    }
    const told = this.#whole(revision, events);
    this.#partly(revision, events.slice(told));
  }

  /** It reads, its node runs and knows a leader, and has applied what the watch starts with, all the time since the last message. */
  waits(at: number): void {
    if (!this.#over && at - this.#heardAt > PROMISED_MS)
      this.#fault('SILENT', `heard nothing for ${at - this.#heardAt} ms`);
  }

  /** Compares the revisions up to `revision`, which the message says are complete. Returns how many events that were. */
  #whole(revision: number, events: readonly ChangeView[]): number {
    let place = 0;
    for (let of = (this.#known ?? 0) + 1; of <= revision; of++) {
      for (const change of this.#changes(of).slice(this.#part)) {
        const event = events[place];
        if (event === undefined || textOf(event) !== textOf(change)) {
          const instead = event === undefined ? 'nothing' : textOf(event);
          const code = event !== undefined && !this.#isLater(event, change) ? 'EXTRA' : 'GAP';
          this.#fault(code, `told ${instead} instead of ${textOf(change)}`);
          return events.length;
        }
        place++;
      }
      this.#part = 0;
      this.#known = of;
    }
    return place;
  }

  /** Compares what came of a revision that is not complete. */
  #partly(revision: number, rest: readonly ChangeView[]): void {
    const of = rest[0]?.revision;
    if (of === undefined) return;
    const changes = this.#changes(of).slice(of === revision + 1 ? this.#part : 0);
    // A part ends before its revision does, and all of it is of the first revision that is not complete.
    const fits = of === revision + 1 && rest.length < changes.length;
    const wrong = rest.findIndex((event, at) => changes[at] === undefined || textOf(event) !== textOf(changes[at]));
    if (!fits || wrong >= 0) {
      this.#fault('EXTRA', `told ${textOf(rest[Math.max(0, wrong)])} behind ${revision}`);
      return;
    }
    this.#part += rest.length;
  }

  #changes(revision: number): readonly ChangeView[] {
    const all = this.#applied(revision);
    if (all === undefined) this.#fault('AHEAD', `told of ${revision}, which nobody has applied`);
    return (all ?? []).filter((change) => domainOf(change).startsWith(this.#start.prefix));
  }

  /** The event did happen, later than what should have come: that one was left out. */
  #isLater(event: ChangeView, expected: ChangeView): boolean {
    const place = (change: ChangeView): number =>
      this.#changes(change.revision).findIndex((each) => textOf(each) === textOf(change));
    if (event.revision !== expected.revision) return event.revision > expected.revision && place(event) >= 0;
    return place(event) > place(expected);
  }

  #fault(code: string, text: string): void {
    this.#report({ code: `WATCH_${code}`, text: `watch ${this.#start.name}: ${text}` });
  }
}

/** Whose change it is: the name that a prefix is compared with. */
export function domainOf(change: ChangeView): string {
  switch (change.type) {
    case 'granted':
      return change.lease.domain;
    case 'ended':
      return change.ended.lease.domain;
    case 'queueChanged':
      return change.domain;
  }
}

function textOf(change: ChangeView | undefined): string {
  switch (change?.type) {
    case undefined:
      return 'nothing';
    case 'granted': {
      const { domain, token, holder, metadata, ttlMs, grantedAtUnixMs } = change.lease;
      return `${change.revision} granted ${JSON.stringify([domain, token, holder, metadata, ttlMs, grantedAtUnixMs])}`;
    }
    case 'ended': {
      const { lease, reason, by, note, currentToken } = change.ended;
      return `${change.revision} ended ${JSON.stringify([lease.domain, lease.token, reason, by, note, currentToken])}`;
    }
    case 'queueChanged':
      return `${change.revision} queue ${change.domain} ${change.queueLength}`;
  }
}
