/** Counts what changed limits do, as the reference tables show it. */
import type { Command } from '../../../src/lease/commands.js';
import type { StateLimits } from '../../../src/lease/types.js';
import type { Coverage } from '../coverage.js';
import type { LeaseModel, Outcome } from '../reference/lease-model.js';

/** `command` came to `outcome` and made `state`; `first` are the limits with which its history began. */
export function countLimits(
  command: Command,
  state: LeaseModel,
  outcome: Outcome,
  first: StateLimits,
  coverage: Coverage,
): void {
  if (command.type === 'limits') {
    coverage.count('limits changed');
    const names = new Set(state.waiting.map(({ domain }) => domain));
    const over = [...names].some((name) => state.queueOf(name).length > state.limits.queue);
    if (over) coverage.count('queue longer than a lowered limit');
    return;
  }
  if (state.limits === first || !isRefused(outcome)) return;
  // A refusal changes nothing: asked again under the first limits, would it have been one?
  const before = state.copy();
  before.limits = first;
  if (!isRefused(before.apply(0, command))) coverage.count('refused by a changed limit');
}

function isRefused(outcome: Outcome): boolean {
  return outcome.type === 'overQuota' || (outcome.type === 'notGranted' && outcome.reason === 'queue_full');
}
