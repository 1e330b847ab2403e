/** The web frameworks that this machine has, from `npm ci --prefix test/servers`, and Node's own server. */
import { createServer } from 'node:http';
import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import { createRequire } from 'node:module';
import type { AddressInfo } from 'node:net';
import type express from 'express';
import type { Request, Response } from 'express';
import type { fastify, FastifyReply, FastifyRequest } from 'fastify';
import { resolve } from 'node:path';
import { expressFencing, fastifyFencing, nodeFencing } from '../../src/guard/http.js';
import type { Applied, FencedLease, FenceReader, Outcome } from '../../src/guard/http.js';

/** What a service does, whatever its framework. */
export interface HttpService {
  /** As in the options of the middleware, by the address of the request. */
  domains(url: URL): readonly string[];
  /** Carries out a request that was admitted. */
  handle(url: URL, leases: readonly FencedLease[]): Promise<Outcome<unknown>>;
  /** For early refusal. */
  readonly guard?: FenceReader;
  /** Answers repetitions, before the fence is looked at; undefined when it has not seen the request. */
  replay?(headers: Readonly<Record<string, unknown>>): string | undefined;
}

/** A service that listens. */
export interface Listening extends AsyncDisposable {
  readonly url: string;
}

/** A framework. */
export interface HttpFramework {
  /** For the names of tests; says what is missing when it is. */
  readonly name: string;
  /** Starts a service; undefined when the framework is not there. */
  readonly start: ((service: HttpService) => Promise<Listening>) | undefined;
}

/** Also for programs that are bundled elsewhere; tests run in the root. */
const require = createRequire(resolve('test/servers/package.json'));

/** Node's own first. Each answers with the value, or 500 to what failed. With `?lose` the answer is lost once it is done. */
export const HTTP: readonly HttpFramework[] = [
  { name: 'node:http', start: startNode },
  optional('express', (loaded, service) => startExpress(loaded as typeof express, service)),
  optional('fastify', (loaded, service) => startFastify(loaded as { fastify: typeof fastify }, service)),
];

function optional(name: string, start: (loaded: unknown, service: HttpService) => Promise<Listening>): HttpFramework {
  let loaded: unknown;
  try {
    loaded = require(name);
  } catch {
    return { name: `${name} (missing: npm ci --prefix test/servers)`, start: undefined };
  }
  return { name, start: (service) => start(loaded, service) };
}

function urlOf(request: { readonly url?: string | undefined }): URL {
  return new URL(request.url ?? '', 'http://localhost');
}

/** What a service answers with. */
export function textOf({ value }: Applied<unknown>): string {
  return typeof value === 'string' ? value : 'done';
}

async function startNode(service: HttpService): Promise<Listening> {
  const fencing = nodeFencing<IncomingMessage, ServerResponse>({
    ...service,
    domains: (request) => service.domains(urlOf(request)),
  });
  const serve = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    const replayed = service.replay?.(request.headers);
    if (replayed !== undefined) {
      response.end(replayed);
      return;
    }
    const leases = await fencing.admit(request, response);
    if (leases === undefined) return;
    const outcome = await service.handle(urlOf(request), leases);
    if (urlOf(request).searchParams.has('lose')) request.socket.destroy();
    else if (fencing.applied(response, outcome)) response.end(textOf(outcome));
  };
  const server = createServer((request, response) => {
    serve(request, response).catch((error: unknown) => {
      response.writeHead(500).end(String(error));
    });
  });
  return listening(server);
}

async function startExpress(express: () => express.Express, service: HttpService): Promise<Listening> {
  const fencing = expressFencing<Request, Response>({
    ...service,
    domains: (request) => service.domains(urlOf(request)),
  });
  const app = express();
  app.use((request, response, next) => {
    const replayed = service.replay?.(request.headers);
    if (replayed === undefined) next();
    else response.send(replayed);
  });
  app.post('{/*path}', fencing.admit, async (request: Request, response: Response) => {
    const outcome = await service.handle(urlOf(request), fencing.leases(request));
    if ('lose' in request.query) request.socket.destroy();
    else if (fencing.applied(response, outcome)) response.send(textOf(outcome));
  });
  // Its last parameter tells Express that it handles errors.
  app.use((error: unknown, request: Request, response: Response, next: (error: unknown) => void) => {
    if (request.socket.destroyed) next(error);
    else response.status(500).send(String(error));
  });
  return listening(createServer(app));
}

async function startFastify(module: { fastify: typeof fastify }, service: HttpService): Promise<Listening> {
  const fencing = fastifyFencing<FastifyRequest, FastifyReply>({
    ...service,
    domains: (request) => service.domains(urlOf(request)),
  });
  const app = module.fastify({ forceCloseConnections: true });
  app.addHook('onRequest', async (request, reply) => {
    const replayed = service.replay?.(request.headers);
    return replayed === undefined ? undefined : reply.send(replayed);
  });
  app.post('/*', { onRequest: fencing.admit }, async (request, reply) => {
    const outcome = await service.handle(urlOf(request), fencing.leases(request));
    if (urlOf(request).searchParams.has('lose')) {
      request.raw.socket.destroy();
      return reply;
    }
    return fencing.applied(reply, outcome) ? textOf(outcome) : reply;
  });
  const url = await app.listen({ host: '127.0.0.1', port: 0 });
  return { url, [Symbol.asyncDispose]: () => app.close() };
}

async function listening(server: Server): Promise<Listening> {
  await new Promise<void>((done) => server.listen(0, '127.0.0.1', done));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    async [Symbol.asyncDispose]() {
      const closed = new Promise((done) => server.close(done));
      server.closeAllConnections();
      await closed;
    },
  };
}
