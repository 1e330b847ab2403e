/** Looks whether a server keeps what the guard relies on. */

/** A connection to one server, not to a Redis Cluster: `call` of `ioredis` and `iovalkey`, `sendCommand` of node-redis. */
export type RedisServer =
  { call(command: string, args: string[]): Promise<unknown> } | { sendCommand(args: string[]): Promise<unknown> };

/** What is wrong with a server. */
export interface ServerFault {
  /** The kind of fault, for scripts. Never renamed or reused. */
  readonly code: 'evicts-fences' | 'not-durable' | 'standby' | 'asynchronous-replication';
  /** The setting, or the server as a whole. */
  readonly subject: string;
  /** What follows the subject in a sentence: what may be lost, and what to set. */
  readonly message: string;
}

/** See {@link fenceFaults}, which says the same as text. */
export async function serverFaults(server: RedisServer): Promise<readonly ServerFault[]> {
  const ask = (command: string, ...args: string[]): Promise<unknown> =>
    'call' in server ? server.call(command, args) : server.sendCommand([command, ...args]);
  const setting = async (name: string): Promise<string> => {
    const reply = await ask('CONFIG', 'GET', name);
    // A list, or where the protocol has maps one of those.
    const value = (Array.isArray(reply) ? reply[1] : Object.values(reply as object)[0]) as string | undefined;
    if (value === undefined) throw new Error(`this server has no setting ${name}`);
    return value;
  };
  const faults: ServerFault[] = [];
  const add = (code: ServerFault['code'], subject: string, message: string): void => {
    faults.push({ code, subject, message });
  };

  const policy = await setting('maxmemory-policy');
  if (policy.startsWith('allkeys-')) {
    const message = `is ${policy}: fences are evicted when memory runs out. Set it to noeviction`;
    add('evicts-fences', 'maxmemory-policy', message);
  }
  if ((await setting('appendonly')) !== 'yes') {
    add('not-durable', 'appendonly', 'is no: a restart takes fences back to the last snapshot. Set it to yes');
  } else {
    const fsync = await setting('appendfsync');
    if (fsync !== 'always') {
      const message = `is ${fsync}: a power failure takes back the last raises. Set it to always`;
      add('not-durable', 'appendfsync', message);
    }
    if ((await setting('no-appendfsync-on-rewrite')) !== 'no') {
      const message = 'is yes: there is no fsync while the file is rewritten. Set it to no';
      add('not-durable', 'no-appendfsync-on-rewrite', message);
    }
  }

  const replication = String(await ask('INFO', 'replication'));
  if (!replication.includes('role:master')) {
    add('standby', 'this server', 'is a replica: it may be behind, and takes no writes. Give the guard the primary');
  } else if (!replication.includes('connected_slaves:0')) {
    add(
      'asynchronous-replication',
      'this server',
      'has replicas: one that is promoted may not have the last raises. After a failover let each holder acquire ' +
        'anew and open before anything is written; min-replicas-to-write only makes a loss rarer',
    );
  }
  return faults;
}

/**
 * What is wrong with this server for fences: each with what may be lost and what to set. Empty when nothing is. It asks for
 * `CONFIG GET` and `INFO`, and throws what the server says where they are forbidden (managed services hide their settings:
 * look there). On Redis Cluster ask every node.
 */
export async function fenceFaults(server: RedisServer): Promise<readonly string[]> {
  return (await serverFaults(server)).map(({ subject, message }) => `${subject} ${message}`);
}
