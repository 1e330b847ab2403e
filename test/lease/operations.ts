/** Random operations for the comparison with the model: small pools, so that ids, domains and tokens meet often. */
import fc from 'fast-check';
import type { Domain } from '../../src/base/ids.js';
import type { Revision } from '../../src/base/revision.js';
import type { Command } from '../../src/lease/commands.js';
import type { Lease } from '../../src/lease/types.js';
import { domain, id, rev } from './kit.js';
import type { Model } from './model.js';

/** A lease named without knowing what there is: counted back from the newest grant, perhaps a little wrong. */
interface LeasePick {
  readonly back: number;
  readonly wrong: 'no' | 'domain' | 'token' | 'version' | 'base';
}

/** A command, with what depends on the state left open. */
export type Operation =
  | {
      readonly type: 'acquire';
      readonly otherDomain: number;
      readonly request: number;
      readonly holder: number;
      readonly ttl: number;
      readonly owner: number;
      readonly seenBack: number;
    }
  | { readonly type: 'withdraw'; readonly otherDomain: number; readonly request: number; readonly owner: number }
  | { readonly type: 'release'; readonly pick: LeasePick; readonly owner: number }
  | { readonly type: 'forceRelease'; readonly pick: LeasePick }
  | { readonly type: 'expire' | 'checkpoint' | 'void'; readonly picks: readonly LeasePick[]; readonly term: number }
  | { readonly type: 'endHold'; readonly term: number }
  | { readonly type: 'noop' };

const OWNERS = ['', '', 'CN=a', 'CN=b'];
const pool = (size: number): fc.Arbitrary<number> => fc.nat({ max: size - 1 });
const pick: fc.Arbitrary<LeasePick> = fc.record({
  back: pool(6),
  wrong: fc.oneof(
    { arbitrary: fc.constant('no' as const), weight: 8 },
    { arbitrary: fc.constantFrom('domain' as const, 'token' as const, 'version' as const, 'base' as const), weight: 1 },
  ),
});
// Mostly the same owner, holder and TTL, or nearly everything would be refused.
const mostlyZero = (size: number): fc.Arbitrary<number> =>
  fc.oneof({ arbitrary: fc.constant(0), weight: 6 }, { arbitrary: pool(size), weight: 1 });

export const operation: fc.Arbitrary<Operation> = fc.oneof(
  {
    weight: 8,
    arbitrary: fc.record({
      type: fc.constant('acquire' as const),
      otherDomain: mostlyZero(4),
      request: pool(24),
      holder: mostlyZero(2),
      ttl: mostlyZero(2),
      owner: mostlyZero(OWNERS.length),
      seenBack: fc.oneof({ arbitrary: fc.constant(0), weight: 4 }, { arbitrary: pool(60), weight: 1 }),
    }),
  },
  {
    weight: 2,
    arbitrary: fc.record({
      type: fc.constant('withdraw' as const),
      otherDomain: mostlyZero(4),
      request: pool(24),
      owner: mostlyZero(OWNERS.length),
    }),
  },
  {
    weight: 5,
    arbitrary: fc.record({ type: fc.constant('release' as const), pick, owner: mostlyZero(OWNERS.length) }),
  },
  { weight: 1, arbitrary: fc.record({ type: fc.constant('forceRelease' as const), pick }) },
  {
    weight: 4,
    arbitrary: fc.record({
      type: fc.constantFrom('expire' as const, 'checkpoint' as const, 'void' as const),
      picks: fc.array(pick, { maxLength: 5, size: 'max' }),
      term: mostlyZero(2),
    }),
  },
  { weight: 1, arbitrary: fc.record({ type: fc.constant('endHold' as const), term: mostlyZero(2) }) },
  { weight: 1, arbitrary: fc.record({ type: fc.constant('noop' as const) }) },
);

/** The command that `operation` stands for in the state that `model` shows. */
export function commandOf(operation: Operation, model: Model): Command | undefined {
  switch (operation.type) {
    case 'noop':
      return undefined;
    case 'acquire':
      return {
        type: 'acquire',
        domain: domainOf(operation),
        requestId: id(operation.request),
        holder: `holder-${operation.holder}`,
        ttlMs: 3_000 + operation.ttl,
        metadata: [['seen', String(operation.seenBack)]],
        seenRevision: Math.max(0, model.revision - operation.seenBack) as Revision,
        atUnixMs: model.revision / 1_000,
        owner: OWNERS[operation.owner] ?? '',
      };
    case 'withdraw':
      return {
        type: 'withdraw',
        domain: domainOf(operation),
        requestId: id(operation.request),
        owner: OWNERS[operation.owner] ?? '',
      };
    case 'release': {
      const { domain, token } = leaseOf(operation.pick, model);
      return { type: 'release', domain, token, owner: OWNERS[operation.owner] ?? '' };
    }
    case 'forceRelease': {
      const { domain, token } = leaseOf(operation.pick, model);
      return { type: 'forceRelease', domain, token, by: 'ann', note: 'stuck' };
    }
    case 'expire':
      return { type: 'expire', term: operation.term, leases: operation.picks.map((one) => leaseOf(one, model)) };
    case 'checkpoint':
      return {
        type: 'checkpoint',
        leases: operation.picks.map((one) => ({ ...leaseOf(one, model), leftMs: 100 + one.back })),
      };
    case 'void':
      return { type: 'void', leases: operation.picks.map((one) => leaseOf(one, model)) };
    case 'endHold':
      return { type: 'endHold', term: operation.term };
  }
}

/** Mostly the same domain for the same request. */
function domainOf({ request, otherDomain }: { readonly request: number; readonly otherDomain: number }): Domain {
  return domain(`d/${(request + otherDomain) % 4}`);
}

/** The lease as it is now, if it lives, else as it was granted; or a wrong name of it. */
function leaseOf({ back, wrong }: LeasePick, model: Model): Pick<Lease, 'domain' | 'token' | 'version'> {
  const grantedLease = model.everGranted.at(-1 - back);
  if (grantedLease === undefined) return { domain: domain('d/0'), token: rev(1 + back), version: 0 };
  const { token, version } = model.leases.find((one) => one.token === grantedLease.token) ?? grantedLease;
  switch (wrong) {
    case 'no':
      return { domain: grantedLease.domain, token, version };
    case 'domain':
      return { domain: domain('d/x'), token, version };
    case 'token':
      return { domain: grantedLease.domain, token: (token + 1) as Revision, version };
    case 'version':
      return { domain: grantedLease.domain, token, version: version + 1 };
    case 'base':
      return { domain: grantedLease.domain, token: rev(-back), version };
  }
}
