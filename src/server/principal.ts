/** Who calls, as far as this node can tell (design 1, request id; S6). */
import type { Principal } from '../replica/types.js';

const IPV4_IN_IPV6 = '::ffff:';

/**
 * The remote address without its port: it serves quotas and audit lines, and binds no request id. `peer` is what grpc-js
 * reports: `127.0.0.1:53210`, or without brackets `::1:53210`. A listener on `::` reports IPv4 clients as
 * `::ffff:127.0.0.1`; they get the same name as from a listener on IPv4.
 */
export function principalOf(peer: string): Principal {
  const end = peer.lastIndexOf(':');
  const address = end > 0 ? peer.slice(0, end) : peer;
  const shown = address.startsWith(IPV4_IN_IPV6) ? address.slice(IPV4_IN_IPV6.length) : address;
  return { name: `addr:${shown}`, authenticated: false };
}
