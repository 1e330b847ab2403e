/** Acquire: the only command that grants. A known id is answered from the state as it is now, never from a recording (F8). */
import { grant } from './change.js';
import { endedRequest, findRequest } from './lookup.js';
import { differenceFrom } from './reuse.js';
import type { State } from './state.js';
import type { Applied, Command, Lease, Result } from './types.js';

/** An Acquire as the log has it. */
export type AcquireCommand = Extract<Command, { readonly type: 'acquire' }>;

/** Grants the domain if it is free and the id is new; see {@link answerKnown} for an id that is not. */
export function acquire(state: State, command: AcquireCommand): Applied {
  const known = answerKnown(state, command);
  if (known !== undefined) return answered(known);
  const { forgotten } = state.requests;
  // Its record may have been evicted: granting could be the second time (F6).
  if (command.seenRevision < forgotten) return answered({ type: 'tooOld', forgotten });
  if (state.holding) return answered({ type: 'notGranted', reason: 'recovering', current: undefined });
  const current = state.leases.get(command.domain);
  if (current !== undefined) return answered({ type: 'notGranted', reason: 'held', current });
  const lease = leaseFrom(state, command);
  grant(state, lease);
  return { result: { type: 'granted', lease }, granted: [lease], ended: [] };
}

/**
 * The answer to an Acquire whose id the state knows; undefined for an unknown id. Changes nothing. An id stands for one
 * domain, TTL, holder and owner; metadata and seenRevision may differ, because a repetition may know more.
 */
export function answerKnown(state: State, command: Omit<AcquireCommand, 'type' | 'atUnixMs'>): Result | undefined {
  const found = findRequest(state, command.requestId);
  if (found === undefined) return undefined;
  if (found.type === 'live') {
    const { lease } = found;
    const difference = differenceFrom(lease, lease, command);
    return difference === undefined ? { type: 'granted', lease } : { type: 'reused', difference };
  }
  const { request } = found;
  const difference = differenceFrom(request, request.asked, command);
  return difference === undefined
    ? { type: 'ended', ended: endedRequest(state, request) }
    : { type: 'reused', difference };
}

function leaseFrom(state: State, command: AcquireCommand): Lease {
  const { domain, requestId, holder, metadata, ttlMs, atUnixMs, owner } = command;
  return {
    domain,
    token: state.revision,
    requestId,
    holder,
    metadata,
    ttlMs,
    grantedAtUnixMs: atUnixMs,
    owner,
    version: 0,
    checkpointLeftMs: undefined,
  };
}

function answered(result: Result): Applied {
  return { result, granted: [], ended: [] };
}
