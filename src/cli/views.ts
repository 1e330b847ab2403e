/** Leases and their ends as people and programs read them. */
import type { EndedView, LeaseView, NotGrantedReason, WaiterView } from '../base/api.js';
import type { Cell } from './table.js';

/** Texts for `EndedView.reason`. */
export const REASONS: Readonly<Record<EndedView['reason'], string>> = {
  unspecified: 'over so long that the cause is forgotten',
  expired: 'not renewed in time',
  released: 'released by its holder',
  withdrawn: 'withdrawn by its request id',
  force_released: 'ended by an operator',
  earlier_history: 'granted in an earlier history of this cluster',
  never_granted: 'never granted for this domain',
  left_queue: 'dropped from the queue: nobody called for it, or its wait was over',
};

/** Texts for `NotGranted.reason`. */
export const NOT_GRANTED: Readonly<Record<NotGrantedReason, string>> = {
  held: 'the domain is held by the lease below; it ends when it is released or not renewed in time',
  wait_over: 'the domain was held for as long as --wait-ms says',
  queue_full: 'as many as may wait for the domain do so already',
  cool_down: 'the domain is closed for a while, because its last lease expired',
  slots_differ: 'the name is in use with another number of slots, and that never changes; take another name',
  recovering: 'the cluster holds grants back after a restore; repeat later',
};

/** Rows for `pairs`. */
export function leaseRows(lease: LeaseView): (readonly [string, Cell])[] {
  return [
    ['domain', { text: lease.domain, tone: 'strong' }],
    ['token', { text: String(lease.token), tone: 'strong' }],
    ['holder', lease.holder],
    ['ttl', `${lease.ttlMs} ms`],
    ['granted at', new Date(lease.grantedAtUnixMs).toISOString()],
    ...lease.metadata.map(([key, value]): readonly [string, Cell] => [`meta ${key}`, value]),
  ];
}

/** Rows for `pairs`. */
export function endedRows(ended: EndedView): (readonly [string, Cell])[] {
  return [
    ...(ended.lease === undefined
      ? []
      : [['domain', ended.lease.domain] as const, ['token', String(ended.lease.token)] as const]),
    ['ended', REASONS[ended.reason]],
    ...(ended.by === '' ? [] : [['by', ended.by] as const]),
    ...(ended.note === '' ? [] : [['note', ended.note] as const]),
    ['now live', ended.currentToken === 0 ? 'none' : `token ${ended.currentToken}`],
  ];
}

/** For `--json`. */
export function leaseJson(lease: LeaseView): Readonly<Record<string, unknown>> {
  return {
    domain: lease.domain,
    token: String(lease.token),
    holder: lease.holder,
    metadata: Object.fromEntries(lease.metadata),
    ttlMs: lease.ttlMs,
    grantedAtUnixMs: lease.grantedAtUnixMs,
  };
}

/** For `--json`. */
export function waiterJson({ holder, metadata, queuedAtUnixMs }: WaiterView): Readonly<Record<string, unknown>> {
  return { holder, metadata: Object.fromEntries(metadata), queuedAtUnixMs };
}

/** For `--json`. */
export function endedJson(ended: EndedView): Readonly<Record<string, unknown>> {
  return {
    domain: ended.lease?.domain ?? null,
    token: ended.lease === undefined ? null : String(ended.lease.token),
    reason: ended.reason,
    by: ended.by,
    note: ended.note,
    currentToken: ended.currentToken === 0 ? null : String(ended.currentToken),
  };
}
