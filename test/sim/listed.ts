/** The faults and rare paths that must occur in every 2 000 seeds: a counter at zero is a path that nothing proves. */
export const LISTED: readonly string[] = [];
