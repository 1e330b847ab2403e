/** The worker's side of each kind of resource. */
import type { FencedLease } from '../../../src/guard/types.js';
import { toDynamo } from './dynamodb.js';
import { pastS3Guard, throughS3Guard } from './s3.js';
import type { Connection, Status, Where } from './resource.js';

/** Connects as {@link Where} says; `guarded` is false where the guard is removed. */
export function connectTo(where: Where, guarded: boolean): Connection {
  switch (where.kind) {
    case 'server':
      return overHttp(where.url, guarded);
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
