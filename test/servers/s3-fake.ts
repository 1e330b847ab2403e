/**
 * A small store with the interface of S3, over HTTP, in memory: objects by path-style keys, ETags, conditional writes, and the
 * errors that S3's documentation has for them; answers can be lost and conflicts made. It checks no signature.
 */
import { createHash } from 'node:crypto';
import { createServer } from 'node:http';
import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';

/** A request, as {@link S3Fake.onRequest} sees it. */
export interface S3Request {
  readonly method: string;
  readonly key: string;
}

/**
 * What befalls a request. `lose before`: the connection breaks, and nothing was done. `lose after`: it was done, and then
 * the connection breaks. `conflict`: 409, nothing was done. `conflict after`: 409 although it is done in the end, as of a
 * request that is repeated while its first copy is still being carried out. `deny`: 403.
 */
export type S3Fate = 'lose before' | 'lose after' | 'conflict' | 'conflict after' | 'deny';

interface Answer {
  readonly status: number;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: Buffer | string;
}

const CONFLICT = fault(409, 'ConditionalRequestConflict', 'A conflicting operation occurred during the upload.');
const DENIED = fault(403, 'AccessDenied', 'Access Denied');

/** A running store. Use with `await using`. */
export class S3Fake implements AsyncDisposable {
  /** The only bucket. */
  static readonly BUCKET = 'bucket';
  readonly url: string;
  /** What befalls a request, asked before it is looked at; undefined for nothing special. */
  onRequest: ((request: S3Request) => Promise<S3Fate | undefined> | S3Fate | undefined) | undefined;
  /** As stores that know no conditional writes do. */
  ignoresConditions = false;
  readonly #server: Server;
  readonly #objects = new Map<string, Buffer>();

  private constructor(server: Server) {
    this.#server = server;
    this.url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    server.on('request', (request, response) => {
      this.#serve(request, response).catch((error: unknown) => {
        response.destroy(error instanceof Error ? error : new Error(String(error)));
      });
    });
  }

  static async start(): Promise<S3Fake> {
    const server = createServer();
    await new Promise<void>((done, fail) => server.once('error', fail).listen(0, '127.0.0.1', done));
    return new S3Fake(server);
  }

  /** All keys, in order. */
  get keys(): readonly string[] {
    return [...this.#objects.keys()].sort();
  }

  /** Puts an object there, or takes it away, past everything. */
  set(key: string, body: string | undefined): void {
    if (body === undefined) this.#objects.delete(key);
    else this.#objects.set(key, Buffer.from(body));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const closed = new Promise((done) => this.#server.close(done));
    this.#server.closeAllConnections();
    await closed;
  }

  async #serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk as Buffer);
    const [, bucket = '', ...rest] = new URL(request.url ?? '', this.url).pathname.split('/');
    const key = rest.map(decodeURIComponent).join('/');
    const method = request.method ?? '';
    const fate = await this.onRequest?.({ method, key });
    const isDone = fate === undefined || fate === 'lose after' || fate === 'conflict after';
    const known = bucket === S3Fake.BUCKET;
    const served = (): Answer => (known ? this.#answer(request, key, Buffer.concat(chunks)) : noSuchBucket());
    const answer = isDone ? served() : fate === 'deny' ? DENIED : CONFLICT;
    if (fate === 'lose before' || fate === 'lose after') request.socket.destroy();
    else send(response, fate === 'conflict after' ? CONFLICT : answer, method === 'HEAD');
  }

  #answer({ method = '', headers }: IncomingMessage, key: string, body: Buffer): Answer {
    const found = this.#objects.get(key);
    const etag = found && etagOf(found);
    const match = this.ignoresConditions ? undefined : headers['if-match'];
    switch (method) {
      case 'GET':
      case 'HEAD':
        if (found === undefined) return noSuchKey();
        if (match !== undefined && match !== etag) return preconditionFailed();
        return { status: 200, headers: { etag: etagOf(found) }, body: found };
      case 'PUT': {
        if (headers['content-encoding']?.includes('aws-chunked') === true)
          return fault(501, 'NotImplemented', 'chunks with signatures');
        const noneMatch = this.ignoresConditions ? undefined : headers['if-none-match'];
        if (noneMatch !== undefined && noneMatch !== '*')
          return fault(501, 'NotImplemented', 'If-None-Match of a write takes * only');
        if (noneMatch !== undefined && found !== undefined) return preconditionFailed();
        if (match !== undefined && found === undefined) return noSuchKey();
        if (match !== undefined && match !== etag) return preconditionFailed();
        this.#objects.set(key, body);
        return { status: 200, headers: { etag: etagOf(body) } };
      }
      case 'DELETE':
        if (match !== undefined && found !== undefined && match !== '*' && match !== etag) return preconditionFailed();
        this.#objects.delete(key);
        return { status: 204 };
      default:
        return fault(501, 'NotImplemented', method);
    }
  }
}

/** Of the content alone, as S3's are for what was put in one part: the same bytes have the same ETag again. */
function etagOf(body: Buffer): string {
  return `"${createHash('md5').update(body).digest('hex')}"`;
}

function send(response: ServerResponse, { status, headers = {}, body = '' }: Answer, isHead: boolean): void {
  response.writeHead(status, { ...headers, 'x-amz-request-id': 'fake', 'content-length': Buffer.byteLength(body) });
  response.end(isHead ? undefined : body);
}

function noSuchKey(): Answer {
  return fault(404, 'NoSuchKey', 'The specified key does not exist.');
}

function noSuchBucket(): Answer {
  return fault(404, 'NoSuchBucket', 'The specified bucket does not exist');
}

function preconditionFailed(): Answer {
  return fault(412, 'PreconditionFailed', 'At least one of the pre-conditions you specified did not hold');
}

function fault(status: number, code: string, message: string): Answer {
  const body = `<?xml version="1.0" encoding="UTF-8"?>\n<Error><Code>${code}</Code><Message>${message}</Message></Error>`;
  return { status, headers: { 'content-type': 'application/xml' }, body };
}
