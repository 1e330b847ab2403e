/** Peer addresses as the configuration writes them: `host:port`, or `[v6]:port`. */
import { parseAddress } from '../base/address.js';
import type { Address } from '../base/address.js';

/** The parts of a peer address; throws an Error that quotes it when it is none. Port 0 takes a free one. */
export function placeOf(address: string): Address {
  const place = parseAddress(address, 0);
  if (place !== undefined) return place;
  throw new Error(
    `peer address "${address}" is not host:port with a port of at most 65535 (write an IPv6 address as [::1]:7201)`,
  );
}

/** The gRPC target of an address. Resolved anew for every client that is built with it. */
export function targetOf(address: string): string {
  return `dns:${address}`;
}
