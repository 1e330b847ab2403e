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
  'recorded-grant-answered': 'a repeated acquire whose lease ended between two looks is rare (scenario F8 sees it)',
  'expire-of-another-token': 'an Expire whose lease was replaced meanwhile is refused by its version too',
  'expire-of-another-version': 'a second line of defence: the leader answers nothing while an Expire is open',
  'waiters-of-an-ended-lease-dropped': 'their clients have given up by the end of a run',
  'checkpoint-not-read': 'the takeover judge allows for what each leader change may add (scenario L5 sees it)',
  'call-lost-with-the-leadership': 'the client gives up before the run asks',
  'monotonic-clock-alone': 'a machine that sleeps within a lease and is asked at once is rare',
  'uptime-not-read': 'as above, with a wall clock that went back meanwhile',
  'seen-revision-not-sent': 'a request table that forgets between two copies of a call of a worker is rare',
  'lost-lease-comes-back': 'a late answer after the deadline is rare',
  'unknown-acquire-not-withdrawn': 'the lease that stays ends by its TTL within every bound that is judged',
  'cut-of-before-an-install':
    'a second line of defence: a replica takes the state of a snapshot in the step in which it accepts the switch, and the store carries out in order what it is handed; no cut of before comes after it (test/storage/store.suite.ts sees it)',
};
