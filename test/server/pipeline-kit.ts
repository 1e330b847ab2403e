/** A stock stream of operations, and what came back on it. */
import { Metadata } from '@grpc/grpc-js';
import type { ClientDuplexStream, StatusObject } from '@grpc/grpc-js';
import type { Header } from '../../src/base/api.js';
import type { Domain, RequestId } from '../../src/base/ids.js';
import type { Revision } from '../../src/base/revision.js';
import type { PipelineCall } from '../../src/wire/public-pipeline-messages.js';
import { readResults } from '../../src/wire/public-pipeline-read.js';
import type { PipelineResult } from '../../src/wire/public-pipeline-read.js';
import { PIPELINE_METHOD, RequestBatch } from '../../src/wire/public-pipeline.js';
import { atEnd, clientOf, until } from './kit.js';

/** See the head of the file. */
export class StockStream {
  readonly results: PipelineResult[] = [];
  /** One for each message. */
  readonly headers: Header[] = [];
  /** How many results each message held. */
  readonly sizes: number[] = [];
  readonly raw: ClientDuplexStream<Buffer, Buffer>;
  status: StatusObject | undefined;

  constructor(address: string) {
    const { path } = PIPELINE_METHOD;
    const asIs = (bytes: Buffer): Buffer => bytes;
    this.raw = clientOf(address).makeBidiStreamRequest(path, asIs, asIs, new Metadata());
    this.raw.on('data', (bytes: Buffer) => {
      const { header, results } = readResults(bytes);
      this.headers.push(header);
      this.sizes.push(results.length);
      this.results.push(...results);
    });
    this.raw.on('status', (status: StatusObject) => {
      this.status = status;
    });
    this.raw.on('error', () => undefined);
    atEnd(() => {
      this.raw.cancel();
    });
  }

  /** All in one message. */
  send(...operations: readonly (readonly [id: number, call: PipelineCall, timeoutMs?: number])[]): void {
    const batch = new RequestBatch();
    for (const [id, call, timeoutMs = 10_000] of operations) batch.add(id, timeoutMs, call);
    this.raw.write(batch.finish());
  }

  async until(count: number): Promise<readonly PipelineResult[]> {
    await until(`${count} results`, () => this.results.length >= count);
    return this.results;
  }

  async ended(): Promise<StatusObject> {
    await until('the end of the stream', () => this.status !== undefined);
    if (this.status === undefined) throw new Error('no status');
    return this.status;
  }

  /** Ids in the order of the results. */
  get ids(): readonly number[] {
    return this.results.map(({ id }) => id);
  }
}

/** An acquire of its own, of the domain with this name. */
export function acquireOf(domain: string, more: { readonly waitMs?: number; readonly id?: number } = {}): PipelineCall {
  return {
    type: 'acquire',
    domain: domain as Domain,
    requestId: `123e4567-e89b-42d3-a456-${String(more.id ?? 1).padStart(12, '0')}` as RequestId,
    holder: 'worker-1',
    ttlMs: 9_000,
    waitMs: more.waitMs ?? 0,
    metadata: [],
    coolDownMs: 0,
    slots: 1,
    seenRevision: 0 as Revision,
  };
}

export function releaseOf(domain: string, token = 7): PipelineCall {
  return { type: 'release', lease: { domain: domain as Domain, token: token as Revision } };
}

export function renewOf(...domains: readonly string[]): PipelineCall {
  return {
    type: 'renew',
    leases: domains.map((domain) => ({ domain: domain as Domain, token: 7 as Revision })),
  };
}

export function withdrawOf(domain: string, id = 1): PipelineCall {
  const requestId = `123e4567-e89b-42d3-a456-${String(id).padStart(12, '0')}` as RequestId;
  return { type: 'withdraw', domain: domain as Domain, requestId };
}
