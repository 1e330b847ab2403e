/** When a request id, or a lease, is used by somebody else or for something else than it was made for. */
import type { Domain } from '../base/ids.js';

/** Who a request id is bound to: `owner` is an authenticated subject, or '' when it binds nobody. */
interface Bound {
  readonly owner: string;
}

/** True when `caller` may not use what is bound to `bound.owner`. */
export function isForeign(bound: Bound, caller: Bound): boolean {
  return bound.owner !== '' && bound.owner !== caller.owner;
}

/**
 * The first field in which an Acquire differs from what its id stands for: 'owner', 'domain', 'ttl_ms' or 'holder', as the
 * API names them; undefined when it is the same. The owner comes first, so that a stranger learns nothing of the rest.
 * `asked` is undefined where only a withdrawal of the id is known, which says nothing of TTL and holder.
 */
export function differenceFrom(
  known: Bound & { readonly domain: Domain },
  asked: { readonly ttlMs: number; readonly holder: string } | undefined,
  command: Bound & { readonly domain: Domain; readonly ttlMs: number; readonly holder: string },
): string | undefined {
  if (isForeign(known, command)) return 'owner';
  if (known.domain !== command.domain) return 'domain';
  if (asked === undefined) return undefined;
  if (asked.ttlMs !== command.ttlMs) return 'ttl_ms';
  if (asked.holder !== command.holder) return 'holder';
  return undefined;
}
