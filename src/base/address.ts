/** A place to listen or to connect to, as `host:port` or `[v6]:port`. */
export interface Address {
  /** Without brackets. */
  readonly host: string;
  /** 1–65535; 0 only where a free port may be taken. */
  readonly port: number;
}

const HOST_PORT = /^(?:\[([0-9A-Fa-f:.%]+)\]|([^\s:[\]]+)):(\d{1,5})$/;

/** The parts of `text`, or undefined when it is not `host:port` with a port from `leastPort` to 65535. */
export function parseAddress(text: string, leastPort = 1): Address | undefined {
  const match = HOST_PORT.exec(text);
  const host = match?.[1] ?? match?.[2];
  const port = Number(match?.[3]);
  return host === undefined || port < leastPort || port > 65_535 ? undefined : { host, port };
}

/** True when only this machine can reach `address`. A name other than `localhost` counts as reachable from outside. */
export function isLoopback(address: Address): boolean {
  const { host } = address;
  return host === 'localhost' || host === '::1' || /^127\.\d{1,3}\.\d{1,3}\.\d{1,3}$/.test(host);
}
