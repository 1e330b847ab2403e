/** Services that others reach with the headers or the metadata of a lease: in front of stores that they own. */
import { rm } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { fencedCall } from '../../../src/guard/grpc.js';
import { GrpcCaller } from '../../servers/grpc.js';
import { HTTP } from '../../servers/http.js';
import { bundle, TalkingChild } from '../talking-child.js';
import { describeStaleHolder } from './frame.js';
import type { RunningResource } from './resource.js';
import type { ServiceOrder } from './service-child.js';
import type { StoreKind } from './stores.js';

const ROOT = resolve(import.meta.dirname, '../../..');

interface Listening {
  readonly type: 'listening';
  readonly url: string;
}

let programs: string;
beforeAll(async () => {
  programs = await bundle('services', 'guards/service-child.ts');
});
afterAll(() => rm(programs, { recursive: true, force: true }));

function startService(framework: string, kind: StoreKind, directory: string): TalkingChild<Listening, object> {
  const order: ServiceOrder = { framework, kind, package: ROOT, directory, domain: 'guarded' };
  return new TalkingChild(join(programs, 'service-child.mjs'), order);
}

async function startHttp(framework: string, kind: StoreKind, directory: string): Promise<RunningResource> {
  const service = startService(framework, kind, directory);
  const { url } = await service.next('listening');
  return {
    where: { kind: 'http', url, package: ROOT },
    async read() {
      const response = await fetch(`${url}/read`, { method: 'POST' });
      expect(response.status).toBe(200);
      return response.text();
    },
    [Symbol.asyncDispose]: () => service.kill(),
  };
}

async function startGrpc(kind: StoreKind, directory: string): Promise<RunningResource> {
  const service = startService('gRPC', kind, directory);
  const { url: address } = await service.next('listening');
  const caller = new GrpcCaller(address, fencedCall);
  return {
    where: { kind: 'grpc', address, package: ROOT },
    read: () => caller.plainly('/read'),
    [Symbol.asyncDispose]() {
      caller.close();
      return service.kill();
    },
  };
}

const STORE_OF: Readonly<Record<string, StoreKind>> = { express: 'LevelDB', fastify: 'LevelDB' };

for (const { name, start } of HTTP) {
  const kind = STORE_OF[name] ?? 'in-process';
  const title = `HTTP by ${name}, ${kind}`;
  if (start !== undefined) describeStaleHolder(title, ({ home }) => startHttp(name, kind, home));
  else {
    describe(title, () => {
      it.skip('a worker that was stopped past its TTL');
    });
  }
}

for (const kind of ['in-process', 'LevelDB'] as const) {
  describeStaleHolder(`gRPC, ${kind}`, ({ home }) => startGrpc(kind, home));
}
