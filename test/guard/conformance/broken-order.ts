/** Guards that compare wrongly, or take one fence for another. */
import type { Fence } from '../../../src/guard/fence.js';
import type { FencedLease, Outcome } from '../../../src/guard/types.js';
import type { SubjectTenure } from '../../../src/guard/conformance/index.js';
import { Reference, rowOf } from './reference.js';
import type { Result, Verdict } from './reference.js';

type Leases = readonly FencedLease[];

export class ComparesWithLess extends Reference {
  protected override admit(fence: Fence | undefined, lease: FencedLease): Verdict {
    if (lease.token === fence?.token) return { status: 'stale', fence: fence.token };
    return super.admit(fence, lease);
  }
}

/** Compares for equality: right for a tenure that has opened, and deaf to the next one. */
export class TakesTheEqualOnly extends Reference {
  protected override admit(fence: Fence | undefined, lease: FencedLease): Verdict {
    if (fence !== undefined && lease.token > fence.token) return { status: 'stale', fence: fence.token };
    return super.admit(fence, lease);
  }
}

export class ComparesDoubles extends Reference {
  protected override admit(fence: Fence | undefined, lease: FencedLease): Verdict {
    if (fence === undefined) return super.admit(fence, lease);
    const [stored, given] = [BigInt(Number(fence.token)), BigInt(Number(lease.token))];
    return super.admit({ ...fence, token: stored }, { ...lease, token: given });
  }
}

export class ComparesText extends Reference {
  protected override admit(fence: Fence | undefined, lease: FencedLease): Verdict {
    if (fence?.issuer !== `fencepost:${lease.cluster}`) return super.admit(fence, lease);
    if (String(lease.token) < String(fence.token)) return { status: 'stale', fence: fence.token };
    // The rest is right.
    return super.admit(lease.token < fence.token ? { ...fence, token: lease.token } : fence, lease);
  }
}

/** An upsert whose condition is left out: the last one sets the fence, whatever it was. */
export class FenceGoesDown extends Reference {
  protected override raise(leases: Leases, item: string): Result {
    const outcome = super.raise(leases, item);
    if (outcome.status !== 'stale') return outcome;
    for (const lease of leases) {
      const key = this.fenceKey(lease.domain, item);
      const fence = this.fences.get(key);
      if (fence !== undefined) this.fences.set(key, { ...fence, token: lease.token });
    }
    return outcome;
  }
}

export class IgnoresIssuer extends Reference {
  protected override admit(fence: Fence | undefined, lease: FencedLease): Verdict {
    return super.admit(fence === undefined ? undefined : { ...fence, issuer: `fencepost:${lease.cluster}` }, lease);
  }
}

export class IgnoresIncarnation extends Reference {
  protected override admit(fence: Fence | undefined, lease: FencedLease): Verdict {
    return super.admit(fence === undefined ? undefined : { ...fence, incarnation: lease.incarnation }, lease);
  }
}

/** A restore of the cluster locks every resource. */
export class RefusesIncarnation extends Reference {
  protected override admit(fence: Fence | undefined, lease: FencedLease): Verdict {
    const verdict = super.admit(fence, lease);
    if (verdict.status !== 'admitted' || verdict.earlierIncarnation === undefined) return verdict;
    return { status: 'rejected', reason: 'incarnation', message: 'not the one it was' };
  }
}

export class FenceForEachItem extends Reference {
  override open(lease: FencedLease): Promise<Outcome<SubjectTenure>> {
    const value: SubjectTenure = { write: (item, text, between) => this.write(lease, item, text, between) };
    return this.transaction(() => {
      // All that there are.
      for (const key of this.fences.keys()) {
        if (!key.startsWith(`${lease.domain} `)) continue;
        const outcome = this.raise([lease], key.slice(lease.domain.length + 1));
        if (outcome.status !== 'applied') return Promise.resolve(outcome);
      }
      const outcome = this.raise([lease], 'item');
      return Promise.resolve(outcome.status === 'applied' ? { ...outcome, value } : outcome);
    });
  }
  override async reset(lease: FencedLease): Promise<void> {
    await super.reset({ ...lease, domain: rowOf(lease.domain, 'item') });
  }
  override async allowIssuer(domain: string, cluster: string): Promise<void> {
    await super.allowIssuer(rowOf(domain, 'item'), cluster);
  }
  protected override fenceKey(domain: string, item: string): string {
    return rowOf(domain, item);
  }
}

export class OneFenceForAll extends Reference {
  override reset(lease: FencedLease): Promise<void> {
    return super.reset({ ...lease, domain: 'all' });
  }
  override allowIssuer(_: string, cluster: string): Promise<void> {
    return super.allowIssuer('all', cluster);
  }
  protected override fenceKey(): string {
    return 'all';
  }
}

export class HasNoCap extends Reference {
  protected override admit(fence: Fence | undefined, lease: FencedLease): Verdict {
    const near = fence !== undefined && lease.token - fence.token > this.maxJump;
    return super.admit(near ? { ...fence, token: lease.token - 1n } : fence, lease);
  }
}

export class ResetsUpwardOnly extends Reference {
  override async reset(lease: FencedLease): Promise<void> {
    if (lease.token > (this.fences.get(lease.domain)?.token ?? 0n)) await super.reset(lease);
  }
}

/** The fence begins anew with another issuer, so its stale holders pass. */
export class ForgetsWithTheIssuer extends Reference {
  override async allowIssuer(domain: string, cluster: string): Promise<void> {
    await super.allowIssuer(domain, cluster);
    const fence = this.fences.get(domain);
    if (fence !== undefined) this.fences.set(domain, { ...fence, token: 1n });
  }
}
