/** The commands that end leases: Release, Withdraw, ForceRelease, Expire. */
import { ZERO_REVISION } from '../base/revision.js';
import { end, finishUnknown } from './change.js';
import { currentToken, describeEnd, findRequest, finishedLease, liveLease } from './lookup.js';
import { isForeign } from './reuse.js';
import type { State } from './state.js';
import type { Applied, Command, FinishedRequest, Lease, Result } from './types.js';

type CommandOf<Type extends Command['type']> = Extract<Command, { readonly type: Type }>;

/**
 * Ends the lease (domain, token) if it lives. A late or repeated Release harms nobody: it names the lease that it ends,
 * and an earlier copy's success is answered as success. What is bound to an owner answers nobody else.
 */
export function release(state: State, command: CommandOf<'release'>): Applied {
  const lease = liveLease(state, command);
  if (lease !== undefined) {
    if (isForeign(lease, command)) return answered({ type: 'reused', difference: 'owner' });
    return ending(state, lease, 'released', { type: 'released', released: true, ended: undefined });
  }
  const finished = finishedLease(state, command);
  if (finished !== undefined && isForeign(finished, command)) return answered({ type: 'reused', difference: 'owner' });
  if (finished?.reason === 'released') return answered({ type: 'released', released: true, ended: undefined });
  return answered({ type: 'released', released: false, ended: describeEnd(state, command) });
}

/**
 * Ends what the request was granted, or remembers an unknown id as over, so that an Acquire with it that comes later does
 * nothing. Afterwards the request holds nothing, whatever had become of it.
 */
export function withdraw(state: State, command: CommandOf<'withdraw'>): Applied {
  const { requestId, domain, owner } = command;
  const found = findRequest(state, requestId);
  if (found === undefined) {
    finishUnknown(state, requestId, domain, owner);
    return answered({ type: 'withdrawn' });
  }
  const known = found.type === 'live' ? found.lease : found.request;
  if (isForeign(known, command)) return answered({ type: 'reused', difference: 'owner' });
  if (known.domain !== domain) return answered({ type: 'reused', difference: 'domain' });
  if (found.type === 'live') return ending(state, found.lease, 'withdrawn', { type: 'withdrawn' });
  return answered({ type: 'withdrawn' });
}

/** Ends the lease (domain, token) whoever holds it. It names the token, so a repetition cannot hit the next holder (S12). */
export function forceRelease(state: State, command: CommandOf<'forceRelease'>): Applied {
  const lease = liveLease(state, command);
  if (lease === undefined) {
    return answered({ type: 'forceReleased', released: false, currentToken: currentToken(state, command.domain) });
  }
  const result: Result = { type: 'forceReleased', released: true, currentToken: ZERO_REVISION };
  return ending(state, lease, 'force_released', result, command.by, command.note);
}

/**
 * Ends each listed lease that is still what the proposer saw. A lease whose version rose was checkpointed or voided in
 * between, so the leader decides anew; an entry of another term than its proposer's is the work of a leader that was
 * deposed meanwhile and does nothing at all (F5, raft 5.2).
 */
export function expire(state: State, command: CommandOf<'expire'>, term: number): Applied {
  const ended: Applied['ended'][number][] = [];
  if (command.term === term) {
    for (const key of command.leases) {
      const lease = liveLease(state, key);
      if (lease?.version !== key.version) continue;
      end(state, lease, 'expired');
      ended.push({ lease, reason: 'expired' });
    }
  }
  return { result: { type: 'done' }, granted: [], ended };
}

function ending(
  state: State,
  lease: Lease,
  reason: FinishedRequest['reason'],
  result: Result,
  by?: string,
  note?: string,
): Applied {
  end(state, lease, reason, by, note);
  return { result, granted: [], ended: [{ lease, reason }] };
}

function answered(result: Result): Applied {
  return { result, granted: [], ended: [] };
}
