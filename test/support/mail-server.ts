/** A mail server for tests: no SMTP, takes each id once, and can keep a sender waiting for its answer. */
import { createServer } from 'node:http';
import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';

/** A request that arrived, whether its mail was new or not. */
interface Arrival {
  readonly id: string;
  readonly from: string;
}

export class MailServer implements AsyncDisposable {
  readonly arrivals: Arrival[] = [];
  readonly url: string;
  /** By their ids: what a customer has got cannot be taken back. */
  readonly #mails = new Map<string, string>();
  readonly #held = new Map<string, ServerResponse[]>();
  readonly #server: Server;

  private constructor(server: Server) {
    this.#server = server;
    this.url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    server.on('request', (request: IncomingMessage, response: ServerResponse) => {
      let text = '';
      request.setEncoding('utf8').on('data', (chunk: string) => (text += chunk));
      request.on('end', () => {
        const id = String(request.headers['idempotency-key']);
        const from = String(request.headers['x-dispatcher']);
        if (!this.#mails.has(id)) this.#mails.set(id, (JSON.parse(text) as { readonly text: string }).text);
        const held = this.#held.get(from);
        if (held === undefined) response.end();
        else held.push(response);
        this.arrivals.push({ id, from });
      });
    });
  }

  static async start(): Promise<MailServer> {
    const server = createServer();
    await new Promise<void>((done) => server.listen(0, '127.0.0.1', done));
    return new MailServer(server);
  }

  /** What the customers have got, in this order. */
  get texts(): string[] {
    return [...this.#mails.values()];
  }

  /** From now on this sender waits for its answers; its mails are taken. */
  hold(from: string): void {
    this.#held.set(from, []);
  }

  letGo(from: string): void {
    for (const response of this.#held.get(from) ?? []) response.end();
    this.#held.delete(from);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#server.closeAllConnections();
    await new Promise((done) => this.#server.close(done));
  }
}
