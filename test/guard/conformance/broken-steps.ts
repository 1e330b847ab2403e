/** Guards whose check, raise and change are not one step, or that do something else on the way. */
import type { Fence } from '../../../src/guard/fence.js';
import { Mutex } from '../../../src/guard/mutex.js';
import type { FencedLease, Outcome } from '../../../src/guard/types.js';
import type { Between, SubjectTenure } from '../../../src/guard/conformance/index.js';
import { NOTHING, Reference } from './reference.js';

type Leases = readonly FencedLease[];

export class CheckThenWrite extends Reference {
  protected override async mutate(leases: Leases, item: string, value: string | undefined, between: Between) {
    const outcome = await this.transaction(() => Promise.resolve(this.raise(leases, item)));
    if (outcome.status !== 'applied') return outcome;
    await between();
    return this.transaction(() => {
      this.change(leases, item, value);
      return Promise.resolve(outcome);
    });
  }
}

/** The write checks, and only another transaction raises. */
export class RaisesOutside extends Reference {
  override crashAfter = 1;
  protected override async mutate(leases: Leases, item: string, value: string | undefined, between: Between) {
    const outcome = await this.transaction(async () => {
      const fences = new Map(this.fences);
      const verdict = this.raise(leases, item);
      this.fences = fences;
      if (verdict.status !== 'applied') return verdict;
      await between();
      this.change(leases, item, value);
      return verdict;
    });
    if (outcome.status === 'applied') await this.transaction(() => Promise.resolve(this.raise(leases, item)));
    return outcome;
  }
}

export class NeverRaises extends Reference {
  protected override setFence(key: string, fence: Fence): void {
    // Only the first token is kept.
    if (!this.fences.has(key)) this.fences.set(key, fence);
  }
}

export class OpenDoesNotRaise extends Reference {
  override open(lease: FencedLease): Promise<Outcome<SubjectTenure>> {
    const value: SubjectTenure = { write: (item, text, between) => this.write(lease, item, text, between) };
    return this.transaction(() => {
      const fences = new Map(this.fences);
      const outcome = this.raise([lease], '');
      this.fences = fences;
      return Promise.resolve(outcome.status === 'applied' ? { ...outcome, value } : outcome);
    });
  }
}

/** An update that no insert precedes. */
export class NeedsTheRow extends Reference {
  protected override mutate(leases: Leases, item: string, value: string | undefined, between: Between) {
    const there = leases.every(({ domain }) => this.fences.has(domain));
    return there ? super.mutate(leases, item, value, between) : Promise.resolve({ status: 'missing' } as const);
  }
}

export class CommitsFailedWork extends Reference {
  protected override mutate(leases: Leases, item: string, value: string | undefined, between: Between) {
    return super.mutate(leases, item, value, async () => {
      try {
        await between();
      } catch {
        // And on it goes.
      }
    });
  }
}

/** Nobody rolls back: whatever comes next waits for ever. */
export class KeepsItsLock extends Reference {
  #stuck = false;
  protected override mutate(leases: Leases, item: string, value: string | undefined, between: Between) {
    if (this.#stuck) return new Promise<Outcome<undefined>>(() => undefined);
    return super.mutate(leases, item, value, async () => {
      try {
        await between();
      } catch (error) {
        this.#stuck = true;
        throw error;
      }
    });
  }
}

/** "Try again with a fresh token" is how a stale holder gets past any guard. */
export class RetriesStale extends Reference {
  protected override async mutate(leases: Leases, item: string, value: string | undefined, between: Between) {
    const outcome = await super.mutate(leases, item, value, between);
    if (outcome.status !== 'stale') return outcome;
    const fresh = leases.map((lease) => {
      const fence = this.fences.get(this.fenceKey(lease.domain, item));
      return fence !== undefined && fence.token > lease.token
        ? { ...lease, token: fence.token, incarnation: fence.incarnation }
        : lease;
    });
    return super.mutate(fresh, item, value, between);
  }
}

export class GivesUpOnStale extends Reference {
  protected override async mutate(leases: Leases, item: string, value: string | undefined, between: Between) {
    for (let tries = 0; tries < 3; tries++) {
      const outcome = await super.mutate(leases, item, value, between);
      if (outcome.status !== 'stale') return outcome;
    }
    throw new Error('gave up after 3 attempts');
  }
}

export class SaysStaleAndWrites extends Reference {
  protected override async mutate(leases: Leases, item: string, value: string | undefined, between: Between) {
    const outcome = await super.mutate(leases, item, value, between);
    if (outcome.status === 'stale') this.change(leases, item, value);
    return outcome;
  }
}

/** A compare-and-set whose repetition finds the version changed, by itself. */
export class MeetsItself extends Reference {
  override async writeLosingResponse(lease: FencedLease, item: string, value: string): Promise<Outcome<undefined>> {
    await this.write(lease, item, value, NOTHING);
    return { status: 'stale', fence: lease.token };
  }
}

export class ChecksTheFirstDomain extends Reference {
  override writeAll(leases: Leases, item: string, value: string): Promise<Outcome<undefined>> {
    return this.transaction(() => {
      const outcome = this.raise(leases.slice(0, 1), item);
      if (outcome.status === 'applied') this.change(leases, item, value);
      return Promise.resolve(outcome);
    });
  }
}

/** One guarded write after another: half of it stays when the second is refused. */
export class WritesDomainByDomain extends Reference {
  override async writeAll(leases: Leases, item: string, value: string): Promise<Outcome<undefined>> {
    let last: Outcome<undefined> = { status: 'retry', attempts: 0, cause: undefined };
    for (const lease of leases) {
      last = await this.write(lease, item, value, NOTHING);
      if (last.status !== 'applied') break;
    }
    return last;
  }
}

/** Locks in the order in which they are named. */
export class LocksAsNamed extends Reference {
  readonly #locks = new Map<string, Mutex>();
  override writeAll(leases: Leases, item: string, value: string): Promise<Outcome<undefined>> {
    const [first, ...others] = leases;
    if (first === undefined) return this.mutate([], item, value, NOTHING);
    const locked = (left: Leases): Promise<Outcome<undefined>> => {
      const [next, ...more] = left;
      if (next === undefined) return this.mutate(leases, item, value, NOTHING);
      const lock = this.#locks.get(next.domain) ?? new Mutex();
      this.#locks.set(next.domain, lock);
      return lock.run(async () => {
        await new Promise((resolve) => setImmediate(resolve));
        return locked(more);
      });
    };
    return locked([first, ...others]);
  }
}
