/** Who is who, and what a majority is, in words of this folder. */
import type { Configuration, Member } from '../../../src/raft/types.js';

/** The last key of each node: most members have one directory for a whole run, and every message names two members. */
const KEYS = new Map<string, { readonly directory: string; readonly key: string }>();

/** A (node, directory) pair as one string. */
export function keyOf({ node, directory }: Member): string {
  const known = KEYS.get(node);
  if (known?.directory === directory) return known.key;
  const key = `${node}/${directory}`;
  KEYS.set(node, { directory, key });
  return key;
}

/** The pair, or undefined for none. */
export function optionalKey(member: Member | undefined): string | undefined {
  return member === undefined ? undefined : keyOf(member);
}

/** The node of a pair. */
export function nodeOf(key: string): string {
  return key.slice(0, key.indexOf('/'));
}

/** A configuration as the relation counts it. */
export interface Electorate {
  /** Of the entry that set it. */
  readonly index: number;
  /** The voters of each half; one half unless it is joint. */
  readonly halves: readonly (readonly string[])[];
  /** Everybody whom it names. */
  readonly listed: ReadonlySet<string>;
}

/** Who counts under `configuration`, set by the entry at `index`. */
export function electorate(index: number, configuration: Configuration): Electorate {
  const halves = [configuration.voters, configuration.outgoing].filter((half) => half.length > 0);
  const all = [...configuration.voters, ...configuration.outgoing, ...configuration.learners];
  return { index, halves: halves.map((half) => half.map(keyOf)), listed: new Set(all.map(keyOf)) };
}

/** True when more than half of every half satisfies `yes`. */
export function majority({ halves }: Electorate, yes: (voter: string) => boolean): boolean {
  return halves.every((half) => 2 * half.filter(yes).length > half.length);
}

/** The greatest of `values` that a majority has reached, 0 if none. */
export function reached(who: Electorate, valueOf: (voter: string) => number): number {
  let best = 0;
  for (const half of who.halves) {
    for (const voter of half) {
      const value = valueOf(voter);
      if (value > best && majority(who, (other) => valueOf(other) >= value)) best = value;
    }
  }
  return best;
}
