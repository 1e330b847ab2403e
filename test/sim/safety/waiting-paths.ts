/** Counts what entries make of those who wait, of closed domains and of slots, as the reference tables show it. */
import type { Command } from '../../../src/lease/commands.js';
import type { Coverage } from '../coverage.js';
import type { LeaseModel } from '../reference/lease-model.js';

/** `command` was applied and made `state`. */
export function countWaiting(command: Command, state: LeaseModel, coverage: Coverage): void {
  const { granted, left, waiting, revision } = state;
  for (const { requestId, domain } of granted) {
    if (domain.includes('#')) coverage.count('slot granted');
    const waiter = left.find((each) => each.requestId === requestId);
    if (waiter === undefined) continue;
    coverage.count(command.type === 'acquire' ? 'free domain granted to a waiter' : `handed over by ${command.type}`);
    const passed = waiting.some((each) => each.domain === waiter.domain && each.queuedAt < waiter.queuedAt);
    if (passed) coverage.count('waiter passed over');
  }
  if (granted.length > 1) coverage.count('many grants in one entry');
  const last = waiting.at(-1);
  if (command.type === 'acquire' && last?.queuedAt === revision) {
    coverage.count('waiter queued');
    if (state.queueOf(last.domain).length > 2) coverage.count('queue of three');
  }
  for (const { finishedAt, reason, token } of state.over.slice(-8)) {
    if (finishedAt !== revision || reason !== 'left_queue') continue;
    coverage.count(token === undefined ? 'wait ended' : 'wait ended behind a grant');
  }
  for (const { since } of state.closed.values()) if (since === revision) coverage.count('domain closed');
  if (command.type === 'endCoolDown') coverage.count('domain opened', command.domains.length);
}
