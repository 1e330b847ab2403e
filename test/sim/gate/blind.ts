/**
 * Switches that nobody in the simulator has noticed yet, and why, as far as is known: blind spots to be opened. Most are
 * seen by another rung of the ladder; where that was tried, it is named.
 */

/** By the name of the switch. */
export const BLIND: Readonly<Record<string, string>> = {
  'write-under-way-survives-install':
    'a leader sends no snapshot before the term is durable there, and what is written in that term agrees with it: only a late vote could be under way (scenario P10 sees it)',
  // What may lie between the decision of an Expire and its entry, in one term, is a Checkpoint that was under way: a
  // renewal, and so a Void, waits for the outcome, and one that came before has moved the deadline. The lease is over
  // by its time then, and without the rule it ends one entry sooner.
  'expire-of-another-version': 'needs a Checkpoint that is refused for load until just before the deadline',
  'cut-of-before-an-install':
    'a second line of defence: a replica takes the state of a snapshot in the step in which it accepts the switch, and the store carries out in order what it is handed; no cut of before comes after it (test/storage/snapshot.suite.ts sees it)',
};
