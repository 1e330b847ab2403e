/** Random sequences of writes, and what must be on the disk after them. */
import fc from 'fast-check';
import { expect } from 'vitest';
import type { Domain } from '../../src/base/ids.js';
import type { Entry, Member } from '../../src/raft/types.js';
import type { Store } from '../../src/replica/ports.js';
import type { Loaded } from '../../src/replica/types.js';
import { C, cutAt, domainRecord, entries, hard, logWrite, type Reports } from './fixtures.js';

/** One thing that happens to a store. */
export type Step =
  | { readonly type: 'append'; readonly count: number; readonly newTerm: boolean; readonly vote: boolean }
  | { readonly type: 'truncate'; readonly back: number; readonly count: number }
  | { readonly type: 'cut'; readonly behind: number; readonly keep: number; readonly domain: number }
  | { readonly type: 'kill' }
  | { readonly type: 'stop' };

const small = (max: number) => fc.integer({ min: 0, max });
/** Any of them. */
export const stepArbitrary: fc.Arbitrary<Step> = fc.oneof(
  fc.record({ type: fc.constant('append' as const), count: small(5), newTerm: fc.boolean(), vote: fc.boolean() }),
  fc.record({ type: fc.constant('truncate' as const), back: small(7), count: small(4) }),
  fc.record({ type: fc.constant('cut' as const), behind: small(4), keep: small(6), domain: small(3) }),
  fc.constantFrom({ type: 'kill' as const }, { type: 'stop' as const }),
);

/** What must be on the disk. */
export class Model {
  /** Writes since the start, and whether there ever was one. */
  #seq = 0;
  #wrote = false;
  #term = 1;
  #vote: Member | undefined;
  #log: Entry[] = [];
  #applied = 0;
  #records = new Map<string, number>();
  #keepFrom = 1;

  restarted(): void {
    this.#seq = 0;
  }

  /** Everything submitted is reported: the last is always a log write. */
  async settled(reports: Reports): Promise<void> {
    if (this.#seq > 0) await reports.until(`written ${this.#seq}`);
  }

  submit(store: Store, step: Exclude<Step, { type: 'kill' | 'stop' }>): void {
    const last = this.#log.length;
    switch (step.type) {
      case 'append':
        if (step.newTerm) this.#newTerm();
        if (step.vote) this.#vote ??= C;
        this.#write(store, undefined, step.count);
        return;
      case 'truncate': {
        const cutFrom = Math.max(this.#applied + 1, last - step.back);
        this.#newTerm();
        this.#log.length = Math.min(last, cutFrom - 1);
        this.#write(store, Math.min(cutFrom, last + 1), step.count);
        return;
      }
      case 'cut': {
        const index = Math.max(this.#applied, last - step.behind);
        const domain = `d${step.domain}`;
        this.#applied = index;
        this.#keepFrom = Math.max(this.#keepFrom, index - step.keep);
        if (this.#records.has(domain)) this.#records.delete(domain);
        else this.#records.set(domain, index + 1);
        const token = this.#records.get(domain);
        const changes =
          token === undefined
            ? { remove: [{ type: 'domain' as const, domain: domain as Domain }] }
            : { put: [domainRecord(domain, token)] };
        store.cut(cutAt(index, this.#log[index - 1]?.term ?? 0, { ...changes, keepFrom: this.#keepFrom }));
        // A cut's report does not tell it from an earlier one at the same index: the write behind it does.
        this.#write(store, undefined, 0);
        return;
      }
    }
  }

  compare(loaded: Loaded): void {
    expect(loaded.hard).toEqual(hard(this.#wrote ? this.#term : 0, this.#vote));
    expect(loaded.anchor.index).toBeLessThanOrEqual(Math.max(0, this.#keepFrom - 1));
    expect(loaded.entries).toEqual(this.#log.slice(loaded.anchor.index));
    expect(loaded.anchor.term).toBe(this.#log[loaded.anchor.index - 1]?.term ?? 0);
    expect(loaded.snapshot.index).toBe(this.#applied);
    expect(loaded.records).toEqual([...this.#records].sort().map(([domain, token]) => domainRecord(domain, token)));
  }

  #newTerm(): void {
    this.#term++;
    this.#vote = undefined;
  }

  #write(store: Store, cutFrom: number | undefined, count: number): void {
    const added = entries(this.#log.length + 1, this.#log.length + count, this.#term);
    this.#log.push(...added);
    this.#wrote = true;
    store.write(logWrite(++this.#seq, this.#term, added, { cutFrom, hard: hard(this.#term, this.#vote) }));
  }
}
