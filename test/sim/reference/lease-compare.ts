/** Holds a member's lease tables, and what it saves of them, against the model. */
import type { Domain, RequestId } from '../../../src/base/ids.js';
import type { State } from '../../../src/lease/state.js';
import type { FinishedRequest, Lease } from '../../../src/lease/types.js';
import type { Cut } from '../../../src/replica/types.js';
import type { LeaseModel, Live, Over } from './lease-model.js';

/** Compares what changed since the last time; with `all`, everything. */
export function compareLeases(model: LeaseModel, state: State, all: boolean, fail: (text: string) => void): void {
  if (state.revision !== model.revision) fail(`its tables are at ${state.revision}, ${model.revision} is applied`);
  for (const domain of all ? model.live.keys() : model.touched) {
    const lease = state.leases.get(domain as Domain);
    const live = model.live.get(domain);
    if (!sameLease(live, lease)) fail(`${domain} is ${leaseText(lease)} and should be ${leaseText(live)}`);
  }
  for (const id of all ? model.ids.keys() : model.touchedIds) {
    const known = state.requests.known.get(id as RequestId);
    const own = model.ids.get(id);
    const same =
      own !== undefined && 'version' in own ? known === own.domain : typeof known !== 'string' && sameOver(own, known);
    if (!same) fail(`request ${id} is ${idText(known)} and should be ${idText(own)}`);
  }
  model.touchedIds.clear();
  if (state.leases.size !== model.live.size) fail(`${state.leases.size} leases live, not ${model.live.size}`);
  if (state.requests.order.length !== model.over.length) {
    fail(`${state.requests.order.length} finished requests are known, not ${model.over.length}`);
  }
  if (state.requests.forgotten !== model.forgotten) {
    fail(`has forgotten up to ${state.requests.forgotten}, not ${model.forgotten}`);
  }
  if (state.holding !== model.holding) fail(state.holding ? 'still holds grants back' : 'grants during the hold');
}

/** The table of a member as its cuts make it: which domains it has, and up to where it knows what is over. */
export interface Table {
  readonly domains: Set<string>;
  /** Domains that changed since the last cut. */
  readonly changed: Set<string>;
  revision: number;
}

/** A cut is the state at its index: every change since the one before is in it. */
export function checkCut(model: LeaseModel, table: Table, { changes }: Cut, fail: (text: string) => void): void {
  const { summary, put, remove } = changes;
  if (summary.forgotten !== model.forgotten || summary.holding !== model.holding) fail('a cut has another summary');
  const over = new Set<Over>();
  const leases = new Set<string>();
  for (const record of put) {
    if (record.type === 'domain') {
      table.domains.add(record.domain);
      leases.add(record.domain);
      if (!sameLease(model.live.get(record.domain), record.lease)) fail(`a cut has another lease of ${record.domain}`);
      continue;
    }
    for (const request of record.requests) {
      const own = model.ids.get(request.requestId);
      if (own === undefined || 'version' in own || !sameOver(own, request)) {
        fail(`a cut has another end of request ${request.requestId}`);
      } else over.add(own);
    }
  }
  for (const key of remove) if (key.type === 'domain') table.domains.delete(key.domain);
  for (const domain of table.changed) {
    if (model.live.has(domain) && !leases.has(domain)) fail(`a cut lacks the changed lease of ${domain}`);
  }
  if (table.domains.size !== model.live.size)
    fail(`the table has ${table.domains.size} domains, not ${model.live.size}`);
  for (const request of model.over) {
    if (request.finishedAt > table.revision && !over.has(request)) fail(`a cut lacks the end of ${request.requestId}`);
  }
  table.changed.clear();
  table.revision = model.revision;
}

function sameLease(own: Live | undefined, lease: Lease | undefined): boolean {
  if (own === undefined || lease === undefined) return own === lease;
  return (
    own.domain === lease.domain &&
    own.token === lease.token &&
    own.requestId === lease.requestId &&
    own.holder === lease.holder &&
    own.ttlMs === lease.ttlMs &&
    own.grantedAtUnixMs === lease.grantedAtUnixMs &&
    own.owner === lease.owner &&
    own.version === lease.version &&
    own.leftMs === lease.checkpointLeftMs &&
    own.metadata.length === lease.metadata.length
  );
}

function sameOver(own: Over | undefined, request: FinishedRequest | undefined): boolean {
  if (own === undefined || request === undefined) return own === request;
  return (
    own.requestId === request.requestId &&
    own.domain === request.domain &&
    own.finishedAt === request.finishedAt &&
    own.token === request.token &&
    own.reason === request.reason &&
    own.by === request.by &&
    own.note === request.note &&
    own.owner === request.owner &&
    own.asked?.ttlMs === request.asked?.ttlMs &&
    own.asked?.holder === request.asked?.holder
  );
}

function leaseText(lease: Live | Lease | undefined): string {
  if (lease === undefined) return 'free';
  const left = 'leftMs' in lease ? lease.leftMs : lease.checkpointLeftMs;
  return `held by token ${lease.token} of ${lease.requestId}, version ${lease.version}, ${left ?? 'no'} ms left`;
}

function idText(known: string | Live | Over | FinishedRequest | undefined): string {
  if (known === undefined) return 'unknown';
  if (typeof known === 'string') return `live in ${known}`;
  return 'version' in known ? `live in ${known.domain}` : `over at ${known.finishedAt} (${known.reason})`;
}
