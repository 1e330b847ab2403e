/** When a request id, or a lease, is used by somebody else or for something else than it was made for. */
import { nameOf } from '../base/domain.js';
import type { Domain } from '../base/ids.js';
import type { Asked } from './types.js';

/** Who a request id is bound to: `owner` is an authenticated subject, or '' when it binds nobody. */
interface Bound {
  readonly owner: string;
}

/** True when `caller` may not use what is bound to `bound.owner`. */
export function isForeign(bound: Bound, caller: Bound): boolean {
  return bound.owner !== '' && bound.owner !== caller.owner;
}

/**
 * The first field in which an Acquire differs from what its id stands for, as the API names them: 'owner', 'domain',
 * 'ttl_ms', 'holder', 'cool_down_ms' or 'slots'; undefined when it is the same. The owner comes first, so that a stranger
 * learns nothing of the rest. `asked` is undefined where only a withdrawal of the id is known, which says nothing more.
 */
export function differenceFrom(
  known: Bound & { readonly domain: Domain },
  asked: Asked | undefined,
  command: Bound & Asked & { readonly domain: Domain },
): string | undefined {
  if (isForeign(known, command)) return 'owner';
  if (nameOf(known.domain) !== command.domain) return 'domain';
  if (asked === undefined) return undefined;
  if (asked.ttlMs !== command.ttlMs) return 'ttl_ms';
  if (asked.holder !== command.holder) return 'holder';
  if (asked.coolDownMs !== command.coolDownMs) return 'cool_down_ms';
  return asked.slots === command.slots ? undefined : 'slots';
}
