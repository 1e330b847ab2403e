/** Peer addresses as the configuration writes them: `host:port`, or `[v6]:port`. */

/** The two halves, as a plain TCP connect wants them. */
export interface HostPort {
  /** A name or an address, without brackets. */
  readonly host: string;
  /** 0–65535; 0 only where a free port may be taken. */
  readonly port: number;
}

const BRACKETED = /^\[([0-9a-fA-F:.%]+)\]:(\d{1,5})$/;
const PLAIN = /^([^\s:/[\]]+):(\d{1,5})$/;

/** Splits an address; throws an Error that quotes it when it is not `host:port`. A bare IPv6 address needs brackets. */
export function parseAddress(address: string): HostPort {
  const found = BRACKETED.exec(address) ?? PLAIN.exec(address);
  const host = found?.[1];
  const port = Number(found?.[2]);
  if (host === undefined || !(port <= 65_535)) {
    throw new Error(
      `peer address "${address}" is not host:port with a port of at most 65535 (write an IPv6 address as [::1]:7201)`,
    );
  }
  return { host, port };
}

/** The gRPC target of an address. Resolved anew for every client that is built with it. */
export function targetOf(address: string): string {
  return `dns:${address}`;
}
