/** Looks whether a server keeps what the guard relies on. */

/** A connection to one server, not to a Redis Cluster: `call` of `ioredis` and `iovalkey`, `sendCommand` of node-redis. */
export type RedisServer =
  { call(command: string, args: string[]): Promise<unknown> } | { sendCommand(args: string[]): Promise<unknown> };

/**
 * What is wrong with this server for fences: each with what may be lost and what to set. Empty when nothing is. It asks for
 * `CONFIG GET` and `INFO`, and throws what the server says where they are forbidden (managed services hide their settings:
 * look there). On Redis Cluster ask every node.
 */
export async function fenceFaults(server: RedisServer): Promise<readonly string[]> {
  const ask = (command: string, ...args: string[]): Promise<unknown> =>
    'call' in server ? server.call(command, args) : server.sendCommand([command, ...args]);
  const setting = async (name: string): Promise<string> => {
    const reply = await ask('CONFIG', 'GET', name);
    // A list, or where the protocol has maps one of those.
    const value = (Array.isArray(reply) ? reply[1] : Object.values(reply as object)[0]) as string | undefined;
    if (value === undefined) throw new Error(`this server has no setting ${name}`);
    return value;
  };
  const faults: string[] = [];

  const policy = await setting('maxmemory-policy');
  if (policy.startsWith('allkeys-')) {
    faults.push(`maxmemory-policy is ${policy}: fences are evicted when memory runs out. Set it to noeviction`);
  }
  if ((await setting('appendonly')) !== 'yes') {
    faults.push('appendonly is no: a restart takes fences back to the last snapshot. Set it to yes');
  } else {
    const fsync = await setting('appendfsync');
    if (fsync !== 'always') {
      faults.push(`appendfsync is ${fsync}: a power failure takes back the last raises. Set it to always`);
    }
    if ((await setting('no-appendfsync-on-rewrite')) !== 'no') {
      faults.push('no-appendfsync-on-rewrite is yes: there is no fsync while the file is rewritten. Set it to no');
    }
  }

  const replication = String(await ask('INFO', 'replication'));
  if (!replication.includes('role:master')) {
    faults.push('this server is a replica: it may be behind, and takes no writes. Give the guard the primary');
  } else if (!replication.includes('connected_slaves:0')) {
    faults.push(
      'this server has replicas: one that is promoted may not have the last raises. After a failover let each holder acquire ' +
        'anew and open before anything is written; min-replicas-to-write only makes a loss rarer',
    );
  }
  return faults;
}
