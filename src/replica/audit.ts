/**
 * Audit lines: who lost what and who did it, and who set which limits, always; who was granted and who gave back what, by option. The leader that
 * applies the entry tells of it; a request id is a bearer secret (S6), so lines carry a digest of it.
 */
import { assert } from '../base/assert.js';
import { digestString, digestText } from '../base/digest.js';
import type { Revision } from '../base/revision.js';
import type { Command, CommandOf } from '../lease/commands.js';
import type { Applied, Lease, Result } from '../lease/types.js';
import { limitTexts } from './limits.js';
import type { Context } from './state.js';
import type { LogFields } from './types.js';

/** Tells what the entry at `revision` ended and granted. */
export function audit(context: Context, command: Command | undefined, applied: Applied, revision: Revision): void {
  const { auditGrants, auditReleases } = context.options;
  for (const { lease, reason } of applied.ended) {
    switch (reason) {
      case 'expired':
        tell(context, 'lease expired', lease, { reason, revision });
        break;
      case 'force_released': {
        const { by, note } = command?.type === 'forceRelease' ? command : { by: '', note: '' };
        tell(context, 'lease force-released', lease, { reason, by, note, revision });
        break;
      }
      // `left_queue`: granted to a waiter that was gone, and taken back before anybody was told.
      case 'released':
      case 'withdrawn':
      case 'left_queue':
        if (auditReleases) tell(context, 'lease released', lease, { reason, revision }, true);
        break;
      case 'earlier_history':
        // Decided when a history is restored, not by an entry.
        break;
    }
  }
  if (command?.type === 'limits') tellOfChange(context, command, applied.result, revision);
  if (!auditGrants) return;
  for (const lease of applied.granted) tell(context, 'lease granted', lease, { ttlMs: lease.ttlMs }, true);
}

/** What each limit was and is. */
function tellOfChange(context: Context, { by }: CommandOf<'limits'>, result: Result, revision: Revision): void {
  assert(result.type === 'limitsChanged', `a change of limits came to ${result.type}`);
  const [before, after] = [limitTexts(result.before), limitTexts(result.after)];
  const changes = Object.entries(after).map(([name, now]) => {
    const was = before[name] ?? '';
    return [name, was === now ? now : `${was} -> ${now}`] as const;
  });
  const fields = { ...Object.fromEntries(changes), by, revision };
  context.out.push({ type: 'log', level: 'audit', message: 'limits changed', fields, detail: false });
}

function tell(context: Context, message: string, lease: Lease, more: LogFields, detail = false): void {
  const { domain, token, holder, principal } = lease;
  const request = digestText(digestString(lease.requestId));
  context.out.push({
    type: 'log',
    level: 'audit',
    message,
    fields: { domain, token, holder, principal, request, ...more },
    detail,
  });
}
