/** Switches of the lease state machine, the leader's clock and the calls that a leader serves. */
import type { Switch } from './switch.js';

/** See the head of the file. */
export const LEASE_SWITCHES: readonly Switch[] = [
  // Calls of other nodes.
  {
    name: 'call-for-another-leadership-served',
    area: 'lease',
    file: 'src/replica/replica.ts',
    text: 'if (context.leadership?.term !== term) complete(',
    replacement: 'if (context.leadership === undefined) complete(',
    rule: 'A copy of a call that was passed to the leader of one term is not served in another.',
    source: 'S5; a call that was answered elsewhere would have its effect after its answer',
  },
  // Renewals.
  {
    name: 'renewal-without-round',
    area: 'lease',
    file: 'src/replica/renewal.ts',
    text: 'afterRound(context, leadership, settled);',
    replacement: 'settled();',
    rule: 'A renewal is answered after a confirmation round.',
    source: 'research 5.4; RN; research 3.5 "renewal without quorum round"',
  },
  {
    name: 'round-under-way-joined',
    area: 'lease',
    file: 'src/raft/rounds.ts',
    text: "emit(raft, { type: 'pendingRound', round: role.rounds.issued + 1 });",
    replacement:
      "emit(raft, { type: 'pendingRound', round: Math.max(role.rounds.issued, role.rounds.confirmed + 1) });",
    rule: 'The round that confirms a request was sent after it arrived.',
    source: 'RD2, RD3; research 5.7 "round number taken before arrival"',
  },
  {
    name: 'round-taken-as-confirmed',
    area: 'lease',
    file: 'src/raft/rounds.ts',
    text: 'voter === raft.key ? rounds.issued : (leading.peers.get(voter)?.round ?? 0),',
    replacement: 'leading.peers.has(voter) || voter === raft.key ? rounds.issued : 0,',
    rule: 'A round is confirmed by a quorum of answers.',
    source: 'research 5.4; research 5.7 "answer sent without round"',
  },
  {
    name: 'renewal-does-not-move-the-clock',
    area: 'lease',
    file: 'src/replica/renewal.ts',
    text: '  renewTimed(timed, arrivedAt);\n',
    replacement: '  if (arrivedAt < 0) renewTimed(timed, arrivedAt);\n',
    rule: 'A renewal moves the expiry from its arrival.',
    source: 'research 5.4 step 1',
    quick: true,
  },
  {
    name: 'repeated-grant-is-no-renewal',
    area: 'lease',
    file: 'src/replica/renewal.ts',
    text: `    renewOne(context, leadership, timed, arrivedAt, () => {
      unlessExpiring(leadership, [lease], resume);
    });
  }
}`,
    replacement: `    if (arrivedAt < 0) {
      renewOne(context, leadership, timed, arrivedAt, resume);
    }
    unlessExpiring(leadership, [lease], resume);
  }
}`,
    rule: 'A repeated Acquire is a renewal in every rule.',
    source: 'F8 schedule A',
  },
  {
    name: 'repeated-grant-without-void',
    area: 'lease',
    file: 'src/replica/renewal.ts',
    text: `    renewOne(context, leadership, timed, arrivedAt, () => {
      unlessExpiring(leadership, [lease], resume);
    });
  }
}`,
    replacement: `    if (timed.expiring === undefined) renewTimed(timed, arrivedAt);
    unlessExpiring(leadership, [lease], resume);
  }
}`,
    rule: 'A repeated Acquire of a flagged lease is answered after its Void.',
    source: 'F8; F5',
  },
  {
    name: 'recorded-grant-answered',
    area: 'lease',
    file: 'src/replica/answers.ts',
    text: 'if (now?.token === lease.token) {',
    replacement: 'if (now?.token === lease.token || lease.token > 0) {',
    also: [
      {
        file: 'src/replica/answers.ts',
        text: "answerAcquire(context, served, { type: 'granted', lease: leaseView(now) });",
        replacement: "answerAcquire(context, served, { type: 'granted', lease: leaseView(now ?? lease) });",
      },
    ],
    rule: 'A grant is answered from the state as it is when the answer leaves.',
    source: 'F8 schedule B',
  },
  // Expire.
  {
    name: 'expiring-state-off',
    area: 'lease',
    file: 'src/replica/leading.ts',
    text: 'else timed.expiring = [];',
    replacement: 'else enqueue(clock, timed, context.time.nowMs + RETRY_MS);',
    rule: 'While an Expire of a lease is open, nothing is answered for it.',
    source: 'L2; research 5.7 "expiring state removed"',
  },
  {
    name: 'expire-of-another-token',
    area: 'lease',
    file: 'src/lease/finish.ts',
    // The version alone would tell most successors apart, so it goes too.
    text: 'const lease = liveLease(state, key);\n    if (lease?.version !== key.version) continue;',
    replacement: 'const lease = state.leases.get(key.domain);\n    if (lease === undefined) continue;',
    rule: 'An Expire ends the lease that it names, not its successor.',
    source: 'design 7; L1',
  },
  {
    name: 'expire-of-another-version',
    area: 'lease',
    file: 'src/lease/finish.ts',
    text: 'if (lease?.version !== key.version) continue;',
    replacement: 'if (lease === undefined) continue;',
    rule: 'An Expire is ignored where a Checkpoint or Void of the lease was applied since.',
    source: 'F5; research 5.2 rule 3',
  },
  {
    name: 'waiters-of-an-ended-lease-dropped',
    area: 'lease',
    file: 'src/replica/clock.ts',
    text: 'const waiting = [...(timed.expiring ?? []), ...(timed.voidWanted ?? [])];',
    replacement: 'const waiting = [...(timed.voidWanted ?? [])];',
    rule: 'What waited for the outcome of an Expire is answered with it.',
    source: 'L2',
  },
  // Checkpoint and Void.
  {
    name: 'flag-set-at-apply',
    area: 'lease',
    file: 'src/replica/renewal.ts',
    text: '  if (timed.checkpointIndex > context.applied) return true;\n',
    replacement: '',
    rule: 'A lease is flagged from the moment its Checkpoint is decided.',
    source: 'F5 schedule A',
  },
  {
    name: 'checkpoint-not-voided',
    area: 'lease',
    file: 'src/replica/renewal.ts',
    text: 'return lease?.token === timed.token && lease.checkpointLeftMs !== undefined;',
    replacement: 'return lease?.token === timed.token && lease.token === 0;',
    rule: 'A renewal of a lease with a Checkpoint is answered after a Void.',
    source: 'F5; L6',
  },
  {
    name: 'only-the-writer-voids',
    area: 'lease',
    file: 'src/replica/renewal.ts',
    text: 'lease.checkpointLeftMs !== undefined;',
    replacement: 'lease.checkpointLeftMs !== undefined && timed.checkpointIndex > 0;',
    rule: 'A Checkpoint is voided whoever wrote it.',
    source: 'F5 schedule C',
  },
  {
    name: 'answered-when-void-is-appended',
    area: 'lease',
    file: 'src/replica/renewal.ts',
    text: "{ type: 'void', leases }, { resume });",
    replacement: "{ type: 'void', leases });\n    if (index !== undefined) resume();",
    rule: 'A renewal of a flagged lease is answered when its Void is applied, not when it is appended.',
    source: 'F5 schedule B',
  },
  {
    name: 'checkpoint-not-read',
    area: 'lease',
    file: 'src/replica/clock.ts',
    text: 'function leftWhenFound({ ttlMs, checkpointLeftMs }: Lease): number {\n  return checkpointLeftMs ?? leaderTtl(ttlMs);',
    replacement: 'function leftWhenFound({ ttlMs }: Lease): number {\n  return leaderTtl(ttlMs);',
    rule: 'A new leader gives a lease no more than its Checkpoint left, so that a dead holder does not last for ever.',
    source: 'L5; contract 6',
  },
  // The clock of a leadership.
  {
    name: 'served-before-the-noop',
    area: 'lease',
    file: 'src/replica/serving.ts',
    text: 'if (leadership.ready === undefined) leadership.waiting.push(served);\n  else start(context, leadership, served);',
    replacement: 'start(context, leadership, served);',
    rule: 'Nothing is served before the own no-op is applied.',
    source: 'RD1; research 5.2 rule 5',
  },
  {
    name: 'clock-before-the-noop',
    area: 'lease',
    file: 'src/replica/leading.ts',
    text: "    log(context, 'info', 'elected leader', { term });\n",
    replacement: '    becomeReady(context, context.leadership);\n',
    also: [
      {
        file: 'src/replica/applying.ts',
        text: '  else if (entry.term === leadership.term) {\n',
        replacement: '  else if (entry.term < 0) {\n',
      },
    ],
    rule: 'A new leader times leases, and serves, only when its no-op is applied.',
    source: 'research 5.2 rule 5; research 5.7 "promotion without no-op"',
  },
  {
    name: 'wall-clock-deadline',
    area: 'lease',
    file: 'src/replica/leading.ts',
    text: '  takeOver(leadership.clock, liveLeases(context.lease), nowMs);\n',
    replacement:
      '  takeOver(leadership.clock, liveLeases(context.lease), nowMs);\n  (leadership.clock as { unixMs?: number }).unixMs = context.time.unixMs;\n',
    also: [
      {
        file: 'src/replica/clock.ts',
        text: 'return startTiming(clock, lease, found.from, leftWhenFound(lease));',
        replacement:
          'const { unixMs } = clock as { unixMs?: number };\n    const leftMs = lease.grantedAtUnixMs + leaderTtl(lease.ttlMs) - (unixMs ?? 0);\n    return startTiming(clock, lease, found.from, lease.checkpointLeftMs ?? Math.max(0, leftMs));',
      },
    ],
    rule: 'A new leader gives each lease its full time: no wall clock decides.',
    source: 'L7; etcd#12291',
  },
  {
    name: 'lease-clock-kept-across-terms',
    area: 'lease',
    file: 'src/replica/leading.ts',
    text: '  if (leadership !== undefined && (!leads || leadership.term !== term)) {\n    context.leadership = undefined;\n',
    replacement:
      '  const kept = context as { clock?: Leadership["clock"] };\n  if (leadership !== undefined && (!leads || leadership.term !== term)) {\n    kept.clock = leadership.clock;\n    context.leadership = undefined;\n',
    also: [
      {
        file: 'src/replica/leading.ts',
        text: 'clock: createClock(),',
        replacement: 'clock: kept.clock ?? createClock(),',
      },
      {
        file: 'src/replica/leading.ts',
        text: '  takeOver(leadership.clock, liveLeases(context.lease), nowMs);\n',
        replacement:
          '  for (const [domain, { token }] of leadership.clock.timed) {\n    if (leaseOf(context.lease, domain)?.token !== token) leadership.clock.timed.delete(domain);\n  }\n  takeOver(leadership.clock, liveLeases(context.lease), nowMs);\n',
      },
    ],
    rule: 'The lease clock is thrown away with the leadership.',
    source: 'S9.1; L1',
  },
  {
    name: 'granted-lease-not-timed',
    area: 'lease',
    file: 'src/replica/applying.ts',
    text: 'for (const lease of applied.granted) startTiming(leadership.clock, lease, from, leaderTtl(lease.ttlMs));',
    replacement:
      'for (const lease of applied.granted) startTiming(leadership.clock, lease, from, leaderTtl(lease.ttlMs) * 1e6);',
    rule: 'A lease that is not renewed ends in time.',
    source: 'contract 6',
  },
  // Calls.
  {
    name: 'read-without-round',
    area: 'lease',
    file: 'src/replica/serving.ts',
    text: `      afterRound(context, leadership, () => {
        answer(context, served, domainAnswer(context, call.domain));
      });`,
    replacement: '      answer(context, served, domainAnswer(context, call.domain));',
    rule: 'A linearizable read waits for a confirmation round.',
    source: 'RD2; RD at a deposed leader',
  },
  {
    name: 'handed-back-as-not-done',
    area: 'lease',
    file: 'src/replica/serving.ts',
    text: "result: { type: 'notLeader', outcome: served.proposed ? 'unknown' : 'not-done' },",
    replacement: "result: { type: 'notLeader', outcome: 'not-done' },",
    rule: 'A call whose entry may be in a log is handed back as unknown.',
    source: 'S5',
  },
  {
    name: 'earlier-attempt-forgotten',
    area: 'lease',
    file: 'src/replica/routing.ts',
    text: "if (outcome === 'unknown') entry.attempted = true;",
    replacement: 'if (outcome === undefined) entry.attempted = true;',
    rule: 'A call that was attempted before ends as unknown, however its last attempt was refused.',
    source: 'S5; design 8',
  },
  {
    name: 'call-lost-with-the-leadership',
    area: 'lease',
    file: 'src/replica/leading.ts',
    text: '    handBack(context, leadership);\n',
    replacement: '    if (term < 0) handBack(context, leadership);\n',
    rule: 'A node that stops leading hands its open calls back.',
    source: 'S5; E9',
  },
  // Requests and their ids.
  {
    name: 'known-id-not-looked-up',
    area: 'lease',
    file: 'src/lease/acquire.ts',
    text: 'if (found !== undefined) return repeated(state, command, found, doing);',
    replacement: "if (found?.type === 'waiting') return repeated(state, command, found, doing);",
    rule: 'An id that is known is answered, not executed again.',
    source: 'contract 5; F8',
    quick: true,
  },
  {
    name: 'forgotten-off',
    area: 'lease',
    file: 'src/lease/acquire.ts',
    text: 'if (command.seenRevision < forgotten) return',
    replacement: 'if (command.seenRevision < 0) return',
    rule: 'A request that may be a copy of a forgotten one is refused as too old.',
    source: 'F6',
  },
  {
    name: 'lease-drops-its-id',
    area: 'lease',
    file: 'src/lease/change.ts',
    text: '  hold(state.requests, requestId, domain);\n',
    replacement: '  if (token < 0) hold(state.requests, requestId, domain);\n',
    rule: 'A live lease keeps the id of its request.',
    source: 'F6',
  },
  {
    name: 'early-withdrawal-forgotten',
    area: 'lease',
    file: 'src/lease/finish.ts',
    text: "    finishUngranted(state, command, undefined, 'withdrawn');\n",
    replacement: "    if (requestId.length === 0) finishUngranted(state, command, undefined, 'withdrawn');\n",
    rule: 'An id that was withdrawn before its Acquire came is over.',
    source: 'F6 schedule C',
  },
  {
    name: 'release-of-another-token',
    area: 'lease',
    file: 'src/lease/finish.ts',
    text: 'const lease = liveLease(state, command);\n  if (lease !== undefined) {\n    if (isForeign',
    replacement: 'const lease = state.leases.get(command.domain);\n  if (lease !== undefined) {\n    if (isForeign',
    rule: 'A Release ends the lease that it names: a late copy harms nobody.',
    source: 'S12; design 7',
  },
  {
    name: 'held-domain-granted',
    area: 'lease',
    file: 'src/lease/slots.ts',
    text: 'return state.leases.has(name) || state.coolDowns.has(name) ? undefined : name;',
    replacement: 'return state.coolDowns.has(name) ? undefined : name;',
    rule: 'A domain has at most one live lease.',
    source: 'contract 2; L4',
  },
  {
    name: 'hold-off',
    area: 'lease',
    file: 'src/lease/acquire.ts',
    text: 'if (place === undefined || state.holding) return',
    replacement: 'if (place === undefined) return',
    rule: 'While a history holds grants back, nothing is granted.',
    source: 'F14',
  },
  {
    name: 'hold-ends-at-once',
    area: 'lease',
    file: 'src/replica/leading.ts',
    text: 'nowMs - ready.since >= context.genesis.holdMs) {',
    replacement: 'nowMs - ready.since >= 0) {',
    rule: 'The hold lasts as long as Genesis says, by the clock of one leader.',
    source: 'F14',
  },
];
