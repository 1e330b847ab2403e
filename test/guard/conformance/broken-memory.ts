/** Guards whose fence does not last, or whose setting lasts too long. */
import type { FencedLease } from '../../../src/guard/types.js';
import { Reference } from './reference.js';

type Leases = readonly FencedLease[];

export class FenceInTheRow extends Reference {
  protected override change(leases: Leases, item: string, value: string | undefined): void {
    super.change(leases, item, value);
    if (value === undefined) for (const { domain } of leases) this.fences.delete(domain);
  }
}

export class FenceExpires extends Reference {
  override async age(): Promise<void> {
    await super.age();
    this.fences.clear();
  }
}

export class FenceInMemory extends Reference {
  override async restart(): Promise<void> {
    await super.restart();
    this.fences.clear();
  }
}

export class SessionSettingLeaks extends Reference {
  protected override endSession(): void {
    // `set` instead of `set local`: the connection goes back to the pool with it.
  }
}
