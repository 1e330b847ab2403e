/** Services that others reach with the headers of a lease: one in front of each kind of store. */
import { rm } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { HTTP } from '../../servers/http.js';
import { bundle, TalkingChild } from '../talking-child.js';
import { describeStaleHolder } from './frame.js';
import type { HttpServiceOrder } from './http-service-child.js';
import type { RunningResource } from './resource.js';
import type { StoreKind } from './stores.js';

const ROOT = resolve(import.meta.dirname, '../../..');

interface Listening {
  readonly type: 'listening';
  readonly url: string;
}

let programs: string;
beforeAll(async () => {
  programs = await bundle('services', 'guards/http-service-child.ts');
});
afterAll(() => rm(programs, { recursive: true, force: true }));

async function startHttp(framework: string, kind: StoreKind, directory: string): Promise<RunningResource> {
  const order: HttpServiceOrder = { framework, kind, package: ROOT, directory, domain: 'guarded' };
  const service = new TalkingChild<Listening, object>(join(programs, 'http-service-child.mjs'), order);
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
