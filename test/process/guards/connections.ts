/** The worker's side of each kind of resource. */
import { join } from 'node:path';
import type * as grpc from '../../../src/guard/grpc.js';
import type * as http from '../../../src/guard/http.js';
import type * as redis from '../../../src/guard/redis.js';
import type { FencedLease } from '../../../src/guard/types.js';
import { GrpcCaller } from '../../servers/grpc.js';
import { REDIS_DRIVERS } from '../../servers/redis.js';
import { toDynamo } from './dynamodb.js';
import { pastS3Guard, throughS3Guard } from './s3.js';
import type { Connection, Status, Where } from './resource.js';

/** Connects as {@link Where} says; `guarded` is false where the guard is removed, `path` that of the package. */
export async function connectTo(where: Where, guarded: boolean, path: string): Promise<Connection> {
  switch (where.kind) {
    case 'server':
      return overHttp(where.url, guarded);
    case 'http':
      return withHeaders(where.url, where.package, guarded);
    case 'grpc':
      return withMetadata(where.address, where.package, guarded);
    case 'redis':
      return await toRedis(where.driver, where.port, guarded, path);
    case 's3':
      return guarded ? throughS3Guard(where.place) : pastS3Guard(where.place);
    case 'dynamodb':
      return toDynamo(where.url, guarded);
  }
}

/** `store-server-child.ts`. */
function overHttp(url: string, guarded: boolean): Connection {
  // A connection of its own for each call: one that is kept would be over after a long stop.
  const headers = { connection: 'close' };
  const post = async (path: string, lease: FencedLease, value: string): Promise<Status> => {
    const { domain, token, cluster, incarnation } = lease;
    const body = JSON.stringify({ lease: { domain, token: token.toString(), cluster, incarnation }, value });
    const response = await fetch(`${url}/${path}`, { method: 'POST', headers, body });
    if (!response.ok) throw new Error(await response.text());
    return ((await response.json()) as { readonly status: Status }).status;
  };
  return {
    open: (lease) => (guarded ? post('open', lease, '') : Promise.resolve('applied')),
    read: async () => (await fetch(url, { headers })).text(),
    write: (lease, value) => post(guarded ? 'write' : 'write-unguarded', lease, value),
  };
}

/** `service-child.ts` over HTTP. */
function withHeaders(url: string, path: string, guarded: boolean): Connection {
  // As above.
  const init = { method: 'POST', headers: { connection: 'close' } };
  const send = async (lease: FencedLease, address: string): Promise<Status> => {
    const { fencedFetch } = (await import(`${path}/dist/guard/http.js`)) as typeof http;
    return (await fencedFetch(lease)(url + address, init)).status;
  };
  const plainly = async (address: string): Promise<string> => (await fetch(url + address, init)).text();
  return toService(send, plainly, guarded);
}

/** `service-child.ts` over gRPC. */
function withMetadata(address: string, path: string, guarded: boolean): Connection {
  const loaded = import(`${path}/dist/guard/grpc.js`) as Promise<typeof grpc>;
  const calling = loaded.then(({ fencedCall }) => new GrpcCaller(address, fencedCall));
  const send = async (lease: FencedLease, text: string): Promise<Status> =>
    (await (await calling).call(lease, text)).status;
  return toService(send, async (text) => (await calling).plainly(text), guarded);
}

function toService(
  send: (lease: FencedLease, address: string) => Promise<Status>,
  plainly: (address: string) => Promise<string>,
  guarded: boolean,
): Connection {
  return {
    open: (lease) => (guarded ? send(lease, '/open') : Promise.resolve('applied')),
    read: () => plainly('/read'),
    async write(lease, value) {
      const query = `?value=${encodeURIComponent(value)}`;
      if (guarded) return send(lease, `/write${query}`);
      return (await plainly(`/write-unguarded${query}`)) === 'done' ? 'applied' : 'rejected';
    },
  };
}

/** One connection for all, as a worker has it. */
async function toRedis(name: string, port: number, guarded: boolean, path: string): Promise<Connection> {
  const key = '{guarded}:text';
  const driver = REDIS_DRIVERS.find((each) => each.name === name);
  if (driver === undefined) throw new Error(`no driver is called ${name}`);
  const { redisFence } = (await import(join(path, 'dist/guard/redis.js'))) as typeof redis;
  const connection = await driver.connect(port);
  const fence = redisFence(connection.client);
  return {
    open: async (lease) => (guarded ? (await fence.open(lease)).status : 'applied'),
    read: async () => ((await connection.send('GET', key)) ?? '') as string,
    async write(lease, value) {
      if (guarded) return (await fence.run(lease, [['SET', key, value]])).status;
      await connection.send('SET', key, value);
      return 'applied';
    },
  };
}
