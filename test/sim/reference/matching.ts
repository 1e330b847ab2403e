/** Which leases a call speaks of, and which entry may have been appended for it. */
import type { Command } from '../../../src/lease/commands.js';
import { subjectOf } from './calls.js';
import type { OpenCall } from './calls.js';
import type { LeaseModel } from './lease-model.js';
import type { Live } from './lease-state.js';

/** The live leases that a call speaks of. */
export function leasesOf({ call }: OpenCall, state: LeaseModel): Live[] {
  if (call.type === 'acquire') {
    const known = state.ids.get(call.requestId);
    return known !== undefined && 'version' in known ? [known] : [];
  }
  if (call.type !== 'renew') return [];
  return call.leases.flatMap(({ domain, token }) => {
    const live = state.live.get(domain);
    return live?.token === token ? [live] : [];
  });
}

/** Whether the call is what the command carries out, with all that counts. */
export function asksFor({ call, principal, seen }: OpenCall, command: Command, subject: string): boolean {
  if (subjectOf(call) !== subject) return false;
  const owner = principal.authenticated ? principal.name : '';
  if (command.type === 'forceRelease') return call.type === 'forceRelease' && command.by === principal.name;
  if (command.type === 'limits') return call.type === 'changeLimits' && command.by === principal.name;
  if (!('owner' in command) || command.owner !== owner) return false;
  if (command.type === 'withdraw') return call.type === 'withdraw' && call.domain === command.domain;
  if (command.type !== 'acquire' || call.type !== 'acquire') return command.type === call.type;
  return (
    command.domain === call.domain &&
    command.holder === call.holder &&
    command.ttlMs === call.ttlMs &&
    command.waitMs === call.waitMs &&
    command.coolDownMs === call.coolDownMs &&
    command.slots === call.slots &&
    command.principal === principal.name &&
    command.seenRevision === seen
  );
}
