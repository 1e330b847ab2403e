import type { Call, LeaseRef } from '../base/api.js';
import { unreachable } from '../base/assert.js';
import type { WireLeaseRef, WireRequest } from './public-types.js';

/** The request message of a call: what a client sends, and what a node passes on to the leader. */
export function requestOf(call: Call): WireRequest {
  switch (call.type) {
    case 'acquire':
      return {
        type: call.type,
        message: {
          domain: call.domain,
          requestId: call.requestId,
          holder: call.holder,
          ttlMs: call.ttlMs,
          waitMs: call.waitMs,
          metadata: Object.fromEntries(call.metadata),
          coolDownMs: call.coolDownMs,
          slots: call.slots,
          seenRevision: BigInt(call.seenRevision),
        },
      };
    case 'renew':
      return { type: call.type, message: { leases: call.leases.map(wireRef) } };
    case 'release':
      return { type: call.type, message: { lease: wireRef(call.lease) } };
    case 'withdraw':
      return { type: call.type, message: { domain: call.domain, requestId: call.requestId } };
    case 'verify':
      return { type: call.type, message: { lease: wireRef(call.lease), freshness: wireFreshness(call.freshness) } };
    case 'get':
      return { type: call.type, message: { domain: call.domain, freshness: wireFreshness(call.freshness) } };
    case 'list': {
      const { prefix, pageSize, after: pageToken } = call;
      return { type: call.type, message: { prefix, pageSize, pageToken, freshness: wireFreshness(call.freshness) } };
    }
    case 'forceRelease':
      return { type: call.type, message: { domain: call.domain, token: BigInt(call.token), note: call.note } };
    case 'transferLeadership':
      return { type: call.type, message: { toNodeId: call.to ?? '' } };
    case 'changeLimits': {
      const { prefixQuotas, ...numbers } = call.change;
      const quotas = prefixQuotas === undefined ? null : { quotas: prefixQuotas };
      return { type: call.type, message: { ...numbers, prefixQuotas: quotas } };
    }
    case 'getStatus':
    case 'getStateHash':
      return { type: call.type, message: {} };
  }
  return unreachable(call);
}

/** A lease's name as its message. */
export function wireRef(ref: LeaseRef): WireLeaseRef {
  return { domain: ref.domain, token: BigInt(ref.token) };
}

function wireFreshness(freshness: 'linearizable' | 'local'): string {
  return freshness === 'local' ? 'FRESHNESS_LOCAL' : 'FRESHNESS_LINEARIZABLE';
}
