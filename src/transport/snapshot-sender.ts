/** Sends one snapshot to one follower over a connection of its own: the next chunk is read when the last has left. */
import * as grpc from '@grpc/grpc-js';
import { SNAPSHOT_CHUNK_BYTES } from '../base/limits.js';
import type { Member } from '../raft/types.js';
import type { SnapshotReader } from '../replica/ports.js';
import type { Hello } from '../replica/types.js';
import { encodeChunk } from '../wire/chunk.js';
import { decodeHello, encodeHello } from '../wire/hello.js';
import { decodeDone, decodeFrame, helloFrame, partFrame } from '../wire/peer-frames.js';
import type { ClientStream } from './channel.js';
import { asBuffer, CONNECT_TIMEOUT_MS, identity, faultOf, PATHS } from './channel.js';
import { Connection } from './connection.js';
import { helloFault } from './greeting.js';

/** One transfer. */
export interface SnapshotJob {
  readonly to: Member;
  /** `host:port` of the follower's peer listener. */
  readonly address: string;
  readonly self: Hello;
  readonly term: number;
  readonly request: number;
  readonly open: () => SnapshotReader;
}

/** How a transfer ended. */
export interface SnapshotOutcome {
  /** `done`: everything is staged at the follower, and it has decided. */
  readonly type: 'done' | 'failed' | 'aborted';
  /** Index of the snapshot; 0 when none of it was read. */
  readonly index: number;
  /** For the log. */
  readonly reason: string;
}

/** See the head of this file. */
export class SnapshotSender {
  readonly #job: SnapshotJob;
  readonly #connection: Connection;
  readonly #stream: ClientStream;
  /** Resolves when the transfer has ended and its reader and connection are closed. */
  readonly finished: Promise<void>;
  #phase: 'greeting' | 'sending' | 'ended' = 'greeting';
  #aborted = false;
  #index = 0;
  #wake: (() => void) | undefined;
  #failure: string | undefined;
  #done = false;

  /** Begins at once; `over` is called once, never from within the constructor, when the transfer has ended. */
  constructor(job: SnapshotJob, over: (outcome: SnapshotOutcome) => void) {
    this.#job = job;
    this.#connection = new Connection(job.address);
    this.#stream = this.#connection.client.makeBidiStreamRequest(PATHS.snapshot, identity, identity);
    this.#listen();
    const report = (reason: string, ended: 'done' | 'failed'): void => {
      over({ type: this.#aborted ? 'aborted' : ended, index: this.#index, reason });
    };
    this.finished = this.#run().then(
      (reason) => {
        report(reason, this.#done ? 'done' : 'failed');
      },
      (error: unknown) => {
        report(faultOf(error), 'failed');
      },
    );
  }

  /** Ends the transfer. */
  abort(): void {
    this.#aborted = true;
    this.#end('aborted');
  }

  async #run(): Promise<string> {
    const watchdog = setTimeout(() => {
      this.#end(`no answer within ${CONNECT_TIMEOUT_MS} ms of dialling`);
    }, CONNECT_TIMEOUT_MS);
    try {
      this.#stream.write(asBuffer(helloFrame(encodeHello(this.#job.self))));
      await this.#until(() => this.#phase === 'sending');
      clearTimeout(watchdog);
      if (this.#failure === undefined) await this.#sendAll();
      await this.#until(() => this.#done);
      return this.#failure ?? 'staged';
    } finally {
      clearTimeout(watchdog);
      this.#end('ended');
      this.#connection.close();
    }
  }

  async #sendAll(): Promise<void> {
    const { term, request } = this.#job;
    const reader = this.#job.open();
    try {
      let complete = false;
      for (let sequence = 0; this.#failure === undefined; sequence += 1) {
        const piece = await reader.next(SNAPSHOT_CHUNK_BYTES);
        if (piece === undefined) break;
        this.#index = piece.meta.index;
        complete = piece.total !== undefined;
        await this.#write(asBuffer(partFrame(encodeChunk({ ...piece, term, request, sequence }))));
      }
      if (!complete && this.#failure === undefined) throw new Error('the snapshot ended without its last chunk');
    } finally {
      await reader.close();
    }
  }

  /** Resolves when the socket has taken the frame, or the transfer is over. */
  async #write(frame: Buffer): Promise<void> {
    if (this.#failure !== undefined) return;
    let taken = false;
    this.#stream.write(frame, () => {
      taken = true;
      this.#wake?.();
    });
    await this.#until(() => taken);
  }

  /** Waits for `condition`, which only stream events change, or for the end of the transfer. */
  async #until(condition: () => boolean): Promise<void> {
    while (!condition() && this.#failure === undefined) {
      await new Promise<void>((resolve) => {
        this.#wake = resolve;
      });
    }
  }

  #listen(): void {
    // Every ending arrives as a status; the error beside it must have a listener.
    this.#stream.on('error', () => undefined);
    this.#stream.on('status', (status) => {
      this.#end(`${status.details} (${grpc.status[status.code]})`);
    });
    this.#stream.on('data', (bytes: Buffer) => {
      try {
        this.#received(bytes);
      } catch (error) {
        this.#end(faultOf(error));
      }
    });
  }

  #received(bytes: Buffer): void {
    if (this.#phase === 'greeting') {
      const { to, self } = this.#job;
      const { hello } = decodeFrame(bytes, 'first answer');
      if (hello === undefined) throw new Error('the first answer carries no hello');
      const other = decodeHello(hello);
      const fault = helloFault(self, other, to.node);
      if (fault !== undefined) throw new Error(fault);
      if (other.directory !== to.directory)
        throw new Error(`node ${to.node} runs with directory ${other.directory}, not ${to.directory}`);
      this.#phase = 'sending';
    } else if (bytes.byteLength > 0 && decodeDone(bytes) === this.#job.request) this.#done = true;
    this.#wake?.();
  }

  /** No more is sent; the first reason counts. A transfer that is done stays done. */
  #end(reason: string): void {
    if (this.#phase === 'ended') return;
    this.#phase = 'ended';
    if (!this.#done) this.#failure = reason;
    this.#stream.cancel();
    this.#wake?.();
  }
}
