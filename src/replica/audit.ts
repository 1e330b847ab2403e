/**
 * Audit lines: who lost what and who did it, always; who was granted and who gave back what, by option. The leader that
 * applies the entry tells of it; a request id is a bearer secret (S6), so lines carry a digest of it.
 */
import { digestString, digestText } from '../base/digest.js';
import type { Revision } from '../base/revision.js';
import type { Command } from '../lease/commands.js';
import type { Applied, Lease } from '../lease/types.js';
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
  if (!auditGrants) return;
  for (const lease of applied.granted) tell(context, 'lease granted', lease, { ttlMs: lease.ttlMs }, true);
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
