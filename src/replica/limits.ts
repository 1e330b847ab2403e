/**
 * The replicated limits as operators know them, against those that this member is configured with: the configuration begins
 * a history, then the state has them and the entry `limits` changes them.
 */
import type { LimitsChange, PrefixQuota, SharedLimits } from '../base/shared-limits.js';
import { LIMIT_NAMES } from '../base/shared-limits.js';
import type { ChangeableLimits } from '../lease/types.js';
import { log } from './state.js';
import type { Context } from './state.js';

/** Under the names of the configuration. */
export function sharedLimits({
  queue,
  leasesPerPrincipal,
  waitersPerPrincipal,
  prefixes,
}: ChangeableLimits): SharedLimits {
  return { queueLimit: queue, leasesPerPrincipal, waitersPerPrincipal, prefixQuotas: prefixes };
}

/** Under the names of the state. */
export function stateChange({ queueLimit, prefixQuotas, ...same }: LimitsChange): Partial<ChangeableLimits> {
  return {
    ...(queueLimit === undefined ? {} : { queue: queueLimit }),
    ...same,
    ...(prefixQuotas === undefined ? {} : { prefixes: prefixQuotas }),
  };
}

/** One line when the two differ, with each setting that does; undefined when they agree. */
export function limitsAlarm(configured: ChangeableLimits, inForce: ChangeableLimits): string | undefined {
  const [own, shared] = [limitTexts(configured), limitTexts(inForce)];
  const differences = Object.keys(own)
    .filter((name) => own[name] !== shared[name])
    .map((name) => `${name} ${own[name] ?? ''}, not ${shared[name] ?? ''}`);
  if (differences.length === 0) return undefined;
  return `this node is configured with other limits than the cluster has, which count: ${differences.join('; ')}. Correct its configuration, or the cluster's limits by fencepost limits set`;
}

/** Other limits are in force than `before`: says so if this member is configured otherwise. */
export function tellOfLimits(context: Context, before: ChangeableLimits): void {
  const { options, lease } = context;
  const alarm = limitsAlarm(options.limits, lease.limits);
  if (alarm !== undefined && alarm !== limitsAlarm(options.limits, before)) log(context, 'warn', alarm);
}

/** Each limit as the configuration writes it, by name. */
export function limitTexts(limits: ChangeableLimits): Readonly<Record<string, string>> {
  const shared = sharedLimits(limits);
  const numbers = LIMIT_NAMES.map((name) => [name, String(shared[name])] as const);
  return { ...Object.fromEntries(numbers), prefixQuotas: quotasText(shared.prefixQuotas) };
}

/** In one order: theirs does not count. */
function quotasText(quotas: readonly PrefixQuota[]): string {
  const texts = quotas.map(({ prefix, leases, waiters }) => `${prefix}=${leases}/${waiters}`);
  return texts.length === 0 ? 'none' : texts.sort().join(',');
}
