/**
 * Switches that nobody in the simulator has noticed yet, and why, as far as is known: blind spots to be opened. Most are
 * seen by another rung of the ladder; where that was tried, it is named.
 */

/** By the name of the switch. */
export const BLIND: Readonly<Record<string, string>> = {
  'one-timeout-for-all': 'start times and latencies differ too much for votes to split for ever (scenario E6 sees it)',
  'log-compared-by-index-alone': 'a longer log of an older term at a candidate is rare (scenario R5 sees it)',
  'handover-never-given-up': 'a hand-over that is lost while nobody campaigns is rare (scenario E9 sees it)',
  'held-replies-of-older-terms': 'caught by the relation in a harness of its own, in runs hardly ever',
  'write-under-way-survives-install': 'an install that overtakes a slow write is rare (scenario P10 sees it)',
  'snapshot-cuts-a-longer-log': 'a snapshot for a member that has caught up meanwhile is rare (scenario S1 sees it)',
  'snapshot-during-install': 'transfers of two leaders at once are rare (scenario P10 sees one like it)',
  'staged-during-install': 'transfers of two leaders at once are rare (scenario P10 sees one like it)',
  'chunk-out-of-order-taken': 'a connection keeps the order of chunks (scenario S5 sees it)',
  // What may lie between the decision of an Expire and its entry, in one term, is a Checkpoint that was under way: a
  // renewal, and so a Void, waits for the outcome, and one that came before has moved the deadline. The lease is over
  // by its time then, and without the rule it ends one entry sooner.
  'expire-of-another-version': 'needs a Checkpoint that is refused for load until just before the deadline',
  'cut-of-before-an-install':
    'a second line of defence: a replica takes the state of a snapshot in the step in which it accepts the switch, and the store carries out in order what it is handed; no cut of before comes after it (test/storage/store.suite.ts sees it)',
};
