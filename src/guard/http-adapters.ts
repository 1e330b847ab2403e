/** Thin adapters: Node's `http`, Express 5, Fastify 5. */
import type { IncomingFields } from './http-fields.js';
import { fencingOver } from './http-server.js';
import type { Adapter, HttpFencing, HttpFencingOptions } from './http-server.js';
import type { FencedLease } from './types.js';

/** What is needed of a request: Node's `IncomingMessage`, hence Express's too, and Fastify's fit. */
export interface HttpRequest {
  /** Names in lower case. */
  readonly headers: IncomingFields;
}

/** What is needed of Node's `ServerResponse`, which Express's is too. */
export interface HttpResponse {
  /** Of the answer. */
  statusCode: number;
  /** Of the answer. */
  setHeader(name: string, value: string): unknown;
  /** Sends it. */
  end(body: string): unknown;
}

/** What is needed of Fastify's reply. */
export interface FastifyResponse {
  /** Sets the status. */
  code(status: number): unknown;
  /** Sets a header field. */
  header(name: string, value: string): unknown;
  /** Sends it. */
  send(body: string): unknown;
}

/** For a handler of Node's `http`. */
export interface NodeFencing<Q, A> extends HttpFencing<Q, A> {
  /**
   * First in the handler. The leases that the request presents; undefined when it was refused, and answered: the handler
   * returns. Rejects when `domains` or the guard's `fence` fails; nothing is answered then.
   */
  admit(request: Q, response: A): Promise<readonly FencedLease[] | undefined>;
}

/** For handlers of Express. */
export interface ExpressFencing<Q, A> extends HttpFencing<Q, A> {
  /** Middleware, before the handler and behind whatever answers repetitions. Failures go to `next`. */
  readonly admit: (request: Q, response: A, next: (error?: unknown) => void) => void;
}

/** For handlers of Fastify. */
export interface FastifyFencing<Q, A> extends HttpFencing<Q, A> {
  /**
   * A hook: `onRequest`, where the body has not been read yet, or any up to `preHandler`. It resolves to the reply when the
   * request was refused, and rejects with failures.
   */
  readonly admit: (request: Q, reply: A) => Promise<A | undefined>;
}

const NODE: Adapter<HttpRequest, HttpResponse> = {
  headers: ({ headers }) => headers,
  setHeader(response, name, value) {
    response.setHeader(name, value);
  },
  send(response, { status, headers, body }) {
    response.statusCode = status;
    for (const [name, value] of Object.entries(headers)) response.setHeader(name, value);
    response.end(body);
  },
};

const FASTIFY: Adapter<HttpRequest, FastifyResponse> = {
  headers: ({ headers }) => headers,
  setHeader(reply, name, value) {
    reply.header(name, value);
  },
  send(reply, { status, headers, body }) {
    reply.code(status);
    for (const [name, value] of Object.entries(headers)) reply.header(name, value);
    reply.send(body);
  },
};

/** Fences for a server of Node's `http`, `https` or `http2` (its compatible API). */
export function nodeFencing<Q extends HttpRequest = HttpRequest, A extends HttpResponse = HttpResponse>(
  options: HttpFencingOptions<Q>,
): NodeFencing<Q, A> {
  return fencingOver<Q, A>(NODE, options);
}

/** Fences for routes of Express 5, or of any server whose middleware looks the same. */
export function expressFencing<Q extends HttpRequest = HttpRequest, A extends HttpResponse = HttpResponse>(
  options: HttpFencingOptions<Q>,
): ExpressFencing<Q, A> {
  const fencing = fencingOver<Q, A>(NODE, options);
  return {
    ...fencing,
    admit(request, response, next) {
      fencing.admit(request, response).then((leases) => {
        if (leases !== undefined) next();
      }, next);
    },
  };
}

/** Fences for routes of Fastify 5. */
export function fastifyFencing<Q extends HttpRequest = HttpRequest, A extends FastifyResponse = FastifyResponse>(
  options: HttpFencingOptions<Q>,
): FastifyFencing<Q, A> {
  const fencing = fencingOver<Q, A>(FASTIFY, options);
  return {
    ...fencing,
    admit: async (request, reply) => ((await fencing.admit(request, reply)) === undefined ? reply : undefined),
  };
}
