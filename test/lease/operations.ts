/** Random operations for the comparison with the model: small pools, so that ids, domains and tokens meet often. */
import fc from 'fast-check';
import type { Domain, RequestId } from '../../src/base/ids.js';
import type { Revision } from '../../src/base/revision.js';
import type { Command } from '../../src/lease/commands.js';
import type { ChangeableLimits, CoolDown, Lease, StateLimits } from '../../src/lease/types.js';
import { domain, id, rev } from './kit.js';
import type { Model } from './model.js';

/** Limits so small that random operations reach every one of them. */
export const SMALL_LIMITS: Partial<StateLimits> = {
  queue: 3,
  leasesPerPrincipal: 5,
  waitersPerPrincipal: 4,
  countingNames: 5,
  prefixes: [
    { prefix: 'd/3', leases: 2, waiters: 2 },
    { prefix: 'd/', leases: 7, waiters: 6 },
  ],
};

/** A lease named without knowing what there is: counted back from the newest grant, perhaps a little wrong. */
interface LeasePick {
  readonly back: number;
  readonly wrong: 'no' | 'domain' | 'token' | 'version' | 'base';
  readonly passed: number;
}
/** A request named by what has become of it, or by its number. */
interface RequestPick {
  readonly among: 'waiters' | 'leases' | 'all';
  readonly at: number;
  readonly passed: number;
}

/** A command, with what depends on the state left open. `passed` has a bit for each waiter of the queue. */
export type Operation =
  | {
      readonly type: 'acquire';
      readonly otherDomain: number;
      readonly request: number;
      readonly holder: number;
      readonly ttl: number;
      readonly otherCoolDown: number;
      readonly otherSlots: number;
      readonly waitMs: number;
      readonly owner: number;
      readonly principal: number;
      readonly seenBack: number;
    }
  | {
      readonly type: 'withdraw';
      readonly otherDomain: number;
      readonly pick: RequestPick;
      readonly owner: number;
    }
  | { readonly type: 'release'; readonly pick: LeasePick; readonly owner: number }
  | { readonly type: 'forceRelease'; readonly pick: LeasePick }
  | { readonly type: 'expire' | 'checkpoint' | 'void'; readonly picks: readonly LeasePick[]; readonly term: number }
  | { readonly type: 'endWait'; readonly picks: readonly RequestPick[]; readonly term: number }
  | { readonly type: 'endCoolDown'; readonly picks: readonly LeasePick[]; readonly term: number }
  | { readonly type: 'endHold'; readonly term: number }
  | { readonly type: 'limits'; readonly change: Partial<ChangeableLimits> }
  | { readonly type: 'noop' };

const REQUESTS = 32;
const OWNERS = ['', '', 'CN=a', 'CN=b'];
/** Of d/0 to d/3 the last two count. */
const SLOTS = [1, 1, 2, 3];
const pool = (size: number): fc.Arbitrary<number> => fc.nat({ max: size - 1 });
// Mostly the same owner, holder and TTL, or nearly everything would be refused.
const mostlyZero = (size: number): fc.Arbitrary<number> =>
  fc.oneof({ arbitrary: fc.constant(0), weight: 6 }, { arbitrary: pool(size), weight: 1 });
const passed = fc.oneof({ arbitrary: fc.constant(0), weight: 2 }, { arbitrary: pool(8), weight: 1 });
const leasePick: fc.Arbitrary<LeasePick> = fc.record({
  back: pool(9),
  wrong: fc.oneof(
    { arbitrary: fc.constant('no' as const), weight: 8 },
    { arbitrary: fc.constantFrom('domain' as const, 'token' as const, 'version' as const, 'base' as const), weight: 1 },
  ),
  passed,
});
const requestPick: fc.Arbitrary<RequestPick> = fc.record({
  among: fc.constantFrom('waiters' as const, 'waiters' as const, 'leases' as const, 'all' as const),
  at: pool(REQUESTS),
  passed,
});
const leasePicks = fc.array(leasePick, { maxLength: 6, size: 'max' });
const owner = mostlyZero(OWNERS.length);
const term = mostlyZero(2);

/** Above and below what there is. */
const limitsChange: fc.Arbitrary<Partial<ChangeableLimits>> = fc.record(
  {
    queue: pool(5),
    leasesPerPrincipal: fc.integer({ min: 1, max: 8 }),
    waitersPerPrincipal: pool(6),
    prefixes: fc.uniqueArray(
      fc.record({ prefix: fc.constantFrom('d/3', 'd/', 'd/2', '', 'e'), leases: pool(9), waiters: pool(7) }),
      { selector: ({ prefix }) => prefix, maxLength: 3 },
    ),
  },
  { requiredKeys: [] },
);

export const operation: fc.Arbitrary<Operation> = fc.oneof(
  {
    weight: 16,
    arbitrary: fc.record({
      type: fc.constant('acquire' as const),
      otherDomain: mostlyZero(4),
      request: pool(REQUESTS),
      holder: mostlyZero(2),
      ttl: mostlyZero(2),
      otherCoolDown: mostlyZero(2),
      otherSlots: mostlyZero(3),
      waitMs: fc.constantFrom(0, 60_000, 60_000),
      owner,
      principal: pool(2),
      seenBack: fc.oneof({ arbitrary: fc.constant(0), weight: 4 }, { arbitrary: pool(60), weight: 1 }),
    }),
  },
  {
    weight: 2,
    arbitrary: fc.record({
      type: fc.constant('withdraw' as const),
      otherDomain: mostlyZero(4),
      pick: requestPick,
      owner,
    }),
  },
  { weight: 4, arbitrary: fc.record({ type: fc.constant('release' as const), pick: leasePick, owner }) },
  { weight: 1, arbitrary: fc.record({ type: fc.constant('forceRelease' as const), pick: leasePick }) },
  {
    weight: 5,
    arbitrary: fc.record({
      type: fc.constantFrom('expire' as const, 'expire' as const, 'checkpoint' as const, 'void' as const),
      picks: leasePicks,
      term,
    }),
  },
  {
    weight: 2,
    arbitrary: fc.record({
      type: fc.constant('endWait' as const),
      picks: fc.array(requestPick, { maxLength: 4 }),
      term,
    }),
  },
  { weight: 3, arbitrary: fc.record({ type: fc.constant('endCoolDown' as const), picks: leasePicks, term }) },
  { weight: 1, arbitrary: fc.record({ type: fc.constant('endHold' as const), term }) },
  { weight: 1, arbitrary: fc.record({ type: fc.constant('limits' as const), change: limitsChange }) },
  { weight: 1, arbitrary: fc.record({ type: fc.constant('noop' as const) }) },
);

/** The command that `operation` stands for in the state that `model` shows. */
export function commandOf(operation: Operation, model: Model): Command | undefined {
  const atUnixMs = model.revision / 1_000;
  switch (operation.type) {
    case 'noop':
      return undefined;
    case 'acquire':
      return acquireOf(operation, model);
    case 'withdraw': {
      const { pick } = operation;
      const { requestId, name } = requestOf(pick, model);
      const other = operation.otherDomain === 0 ? name : domain(`d/${operation.otherDomain}`);
      const detached = detachedOf(name, pick.passed, model);
      return { type: 'withdraw', domain: other, requestId, owner: ownerOf(operation), detached, atUnixMs };
    }
    case 'release': {
      const { domain: of, token, detached } = leaseOf(operation.pick, model);
      return { type: 'release', domain: of, token, owner: ownerOf(operation), detached, atUnixMs };
    }
    case 'forceRelease': {
      const { domain: of, token, detached } = leaseOf(operation.pick, model);
      return { type: 'forceRelease', domain: of, token, by: 'ann', note: 'stuck', detached, atUnixMs };
    }
    case 'expire': {
      const leases = operation.picks.map((one) => leaseOf(one, model));
      return { type: 'expire', term: operation.term, leases, atUnixMs };
    }
    case 'endWait': {
      const waits = operation.picks.map((one) => {
        const { requestId, name } = requestOf(one, model);
        return { requestId, detached: detachedOf(name, one.passed, model) };
      });
      return { type: 'endWait', term: operation.term, waits, atUnixMs };
    }
    case 'endCoolDown': {
      const domains = operation.picks.flatMap((one) => coolDownOf(one, model));
      return { type: 'endCoolDown', term: operation.term, domains, atUnixMs };
    }
    case 'checkpoint':
      return {
        type: 'checkpoint',
        leases: operation.picks.map((one) => ({ ...leaseOf(one, model), leftMs: 100 + one.back })),
      };
    case 'void':
      return { type: 'void', leases: operation.picks.map((one) => leaseOf(one, model)) };
    case 'limits':
      return { type: 'limits', change: operation.change, by: 'ann' };
    case 'endHold':
      return { type: 'endHold', term: operation.term };
  }
}

function acquireOf(operation: Extract<Operation, { readonly type: 'acquire' }>, model: Model): Command {
  const { request, otherDomain, otherCoolDown, otherSlots, waitMs } = operation;
  const number = (request + otherDomain) % 4;
  // Mostly the same contents for the same request.
  const coolDownMs = request % 3 === 0 ? 50 : 0;
  return {
    type: 'acquire',
    domain: domain(`d/${number}`),
    requestId: id(request),
    holder: `holder-${operation.holder}`,
    ttlMs: 3_000 + operation.ttl,
    metadata: [['seen', String(operation.seenBack)]],
    coolDownMs: coolDownMs + otherCoolDown,
    slots: (SLOTS[number] ?? 1) + otherSlots,
    waitMs,
    seenRevision: Math.max(0, model.revision - operation.seenBack) as Revision,
    atUnixMs: model.revision / 1_000,
    owner: ownerOf(operation),
    principal: `principal-${operation.principal}`,
  };
}

function ownerOf(operation: { readonly owner: number }): string {
  return OWNERS[operation.owner] ?? '';
}

/** The waiters of `name` whose bits are set; and one who does not wait, who must make no difference. */
function detachedOf(name: Domain, bits: number, model: Model): RequestId[] {
  if (bits === 0) return [];
  const waiting = model.queue(name).filter((_, at) => (bits & (1 << at)) !== 0);
  return [id(REQUESTS), ...waiting.map(({ requestId }) => requestId)];
}

function requestOf({ among, at }: RequestPick, model: Model): { readonly requestId: RequestId; readonly name: Domain } {
  const list = among === 'all' ? [] : model[among];
  const found = list[at % Math.max(1, list.length)];
  if (found === undefined) return { requestId: id(at), name: domain(`d/${at % 4}`) };
  return { requestId: found.requestId, name: bare(found.domain) };
}

/** The lease as it is now, if it lives, else as it was granted; or a wrong name of it. */
function leaseOf(
  { back, wrong, passed: bits }: LeasePick,
  model: Model,
): Pick<Lease, 'domain' | 'token' | 'version'> & { readonly detached: readonly RequestId[] } {
  const grantedLease = model.everGranted.at(-1 - back);
  if (grantedLease === undefined) return { domain: domain('d/0'), token: rev(1 + back), version: 0, detached: [] };
  const { domain: of, token, version } = model.live(grantedLease) ?? grantedLease;
  const right = { domain: of, token, version, detached: detachedOf(bare(of), bits, model) };
  switch (wrong) {
    case 'no':
      return right;
    case 'domain':
      return { ...right, domain: domain('d/x') };
    case 'token':
      return { ...right, token: (token + 1) as Revision };
    case 'version':
      return { ...right, version: version + 1 };
    case 'base':
      return { ...right, token: rev(-back) };
  }
}

function coolDownOf(
  { back, wrong, passed: bits }: LeasePick,
  model: Model,
): (Pick<CoolDown, 'domain' | 'since'> & { readonly detached: readonly RequestId[] })[] {
  const closed = model.coolDowns[back % Math.max(1, model.coolDowns.length)];
  if (closed === undefined) return [];
  const right = { domain: closed.domain, since: closed.since, detached: detachedOf(bare(closed.domain), bits, model) };
  if (wrong === 'domain') return [{ ...right, domain: domain('d/x') }];
  return [wrong === 'no' ? right : { ...right, since: (closed.since + 1) as Revision }];
}

function bare(of: Domain): Domain {
  return domain(of.split('#')[0] ?? '');
}
