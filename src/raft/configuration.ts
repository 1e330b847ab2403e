import { assert } from '../base/assert.js';
import { listMembers } from './member.js';
import type { Listed } from './member.js';
import { halvesOf } from './quorum.js';
import type { Halves } from './quorum.js';
import type { Configuration, Entry, MemberKey, SnapshotMeta } from './types.js';

/** A configuration with what is derived from it, made once when it comes into force. */
export interface InForce {
  /** Of the entry that set it; the history's start for the first. */
  readonly index: number;
  readonly configuration: Configuration;
  readonly halves: Halves;
  readonly members: readonly Listed[];
}

/** The configurations of the log, oldest first: the snapshot's, then one for each configuration entry. The last is in force. */
export type Configurations = InForce[];

/** Begins with the configuration of a snapshot. Nothing older or newer survives it (M13). */
export function startConfigurations(meta: SnapshotMeta): Configurations {
  assert(
    meta.configurationIndex <= meta.index,
    `a snapshot at ${meta.index} has a configuration of ${meta.configurationIndex}`,
  );
  return [inForceFrom(meta.configurationIndex, meta.configuration)];
}

/** The configuration that counts now: in force when appended, not when committed (M2). */
export function inForce(configurations: Configurations): InForce {
  const last = configurations.at(-1);
  assert(last !== undefined, 'there is no configuration in force');
  return last;
}

/** Takes the configuration of an entry that was appended. */
export function adopt(configurations: Configurations, entry: Entry): void {
  assert(
    (entry.kind === 'configuration') === (entry.configuration !== undefined),
    `entry ${entry.index} is of kind ${entry.kind} but its configuration says otherwise`,
  );
  if (entry.configuration === undefined) return;
  assert(entry.index > inForce(configurations).index, `configuration entry ${entry.index} comes too late`);
  configurations.push(inForceFrom(entry.index, entry.configuration));
}

/** Goes back to the configuration before the log was cut at `from`. */
export function revertConfigurations(configurations: Configurations, from: number): void {
  while (configurations.length > 1 && inForce(configurations).index >= from) configurations.pop();
  assert(inForce(configurations).index < from, `no configuration is left before ${from}`);
}

/** The configuration that an entry at `index` was under. `index` must not lie before the oldest known one. */
export function configurationFor(configurations: Configurations, index: number): InForce {
  const found = configurations.findLast((candidate) => candidate.index <= index);
  assert(found !== undefined, `the configuration at ${index} is no longer known`);
  return found;
}

/** Forgets what was replaced at or before `index`. */
export function trimConfigurations(configurations: Configurations, index: number): void {
  while ((configurations[1]?.index ?? Infinity) <= index) configurations.shift();
}

/** Whether `key` counts in some half. A demoted voter does until its half has gone (M6). */
export function isVoter(configuration: InForce, key: MemberKey): boolean {
  return configuration.halves.some((half) => half.includes(key));
}

/** Whether the configuration names this pair at all. */
export function isListed(configuration: InForce, key: MemberKey): boolean {
  return configuration.members.some((listed) => listed.key === key);
}

function inForceFrom(index: number, configuration: Configuration): InForce {
  return { index, configuration, halves: halvesOf(configuration), members: listMembers(configuration) };
}
