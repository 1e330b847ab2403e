/** Who calls, as far as this node can tell (design 1, request id; S6). */
import type { Principal } from '../replica/types.js';

/**
 * The remote address without its port: it serves quotas and audit lines, and binds no request id. `peer` is what grpc-js
 * reports, `127.0.0.1:53210` or `[::1]:53210`.
 */
export function principalOf(peer: string): Principal {
  const end = peer.startsWith('[') ? peer.indexOf(']') + 1 : peer.lastIndexOf(':');
  return { name: `addr:${end > 0 ? peer.slice(0, end) : peer}`, authenticated: false };
}
