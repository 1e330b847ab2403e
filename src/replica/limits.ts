/** The replicated limits against those that this member is configured with: they begin the history, then the state has them. */
import type { PrefixQuota, StateLimits } from '../lease/types.js';

/** The settings of a node that stand for replicated limits, by the name that an operator knows. */
const SETTINGS = [
  ['queueLimit', 'queue'],
  ['leasesPerPrincipal', 'leasesPerPrincipal'],
  ['waitersPerPrincipal', 'waitersPerPrincipal'],
] as const;

/** One line when the two differ, with each setting that does; undefined when they agree. */
export function limitsAlarm(configured: StateLimits, inForce: StateLimits): string | undefined {
  const differences = SETTINGS.flatMap(([setting, limit]) =>
    configured[limit] === inForce[limit] ? [] : [`${setting} ${configured[limit]}, not ${inForce[limit]}`],
  );
  const [own, shared] = [quotasText(configured.prefixes), quotasText(inForce.prefixes)];
  if (own !== shared) differences.push(`prefixQuotas ${own}, not ${shared}`);
  if (differences.length === 0) return undefined;
  return `this node is configured with other limits than the cluster has, which count: ${differences.join('; ')}. Correct its configuration`;
}

/** As the configuration writes them, in one order. */
function quotasText(prefixes: readonly PrefixQuota[]): string {
  const texts = prefixes.map(({ prefix, leases, waiters }) => `${prefix}=${leases}/${waiters}`);
  return texts.length === 0 ? 'none' : texts.sort().join(',');
}
