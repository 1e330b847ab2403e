import { cp, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { DirectoryId, Domain, Incarnation, NodeId, RequestId } from '../../src/base/ids.js';
import type { Revision } from '../../src/base/revision.js';
import { STATE_LIMITS } from '../../src/base/limits.js';
import type { FinishedRequest, StateLimits, StateRecord, StateSummary } from '../../src/lease/types.js';
import type { Configuration, Entry, HardState, LogWrite, Member, SnapshotMeta } from '../../src/raft/types.js';
import type { SnapshotReader, StoreListener } from '../../src/replica/ports.js';
import type { Cut, Genesis, SnapshotChunk } from '../../src/replica/types.js';
import type { Expected } from '../../src/storage/directory.js';
import { encodeConfiguration } from '../../src/wire/configuration.js';

export const EXPECTED: Expected = { cluster: 'test', node: 'a' as NodeId };

export const member = (name: string): Member => ({
  node: name as NodeId,
  directory: Buffer.from(name.padEnd(16, '.')).toString('hex') as DirectoryId,
});

export const [A, B, C] = [member('a'), member('b'), member('c')];

export const CONFIGURATION: Configuration = { voters: [A, B, C], outgoing: [], learners: [] };

/** Genesis of a cluster in which the directory `directory` is node a's. */
/** Of every state here. */
export const LIMITS: StateLimits = { ...STATE_LIMITS, finishedRequests: 16 };

export function genesisFor(
  directory: DirectoryId,
  history: { base?: number; start?: number; startTerm?: number } = {},
): Genesis {
  return {
    incarnation: '00112233445566778899aabbccddeeff' as Incarnation,
    cluster: EXPECTED.cluster,
    history: { base: (history.base ?? 1_796_000_000_000_000) as Revision, start: history.start ?? 0 },
    startTerm: history.startTerm ?? 0,
    holdMs: 0,
    limits: LIMITS,
    members: [{ node: EXPECTED.node, directory }, B, C],
    stateDigest: '',
  };
}

export const GENESIS = genesisFor(A.directory);

export const hard = (term: number, vote?: Member): HardState => ({ term, vote });

/** A command whose payload tells index and term, so that no two entries are alike. */
export function entry(index: number, term: number, bytes = 8): Entry {
  const payload = new Uint8Array(bytes).fill(index);
  payload[0] = term;
  return { index, term, kind: 'command', payload };
}

export const entries = (from: number, to: number, term: number, bytes?: number): Entry[] =>
  Array.from({ length: to - from + 1 }, (_, i) => entry(from + i, term, bytes));

export function configurationEntry(index: number, term: number, configuration: Configuration): Entry {
  return { index, term, kind: 'configuration', payload: encodeConfiguration(configuration), configuration };
}

/** A log write without the parts that most do not have. */
export function logWrite(seq: number, term: number, written: readonly Entry[], more: Partial<LogWrite> = {}): LogWrite {
  return { seq, hard: hard(term), cutFrom: undefined, entries: written, install: undefined, ...more };
}

export function meta(index: number, term: number): SnapshotMeta {
  return { index, term, configuration: CONFIGURATION, configurationIndex: 0 };
}

export const SUMMARY: StateSummary = { forgotten: 0 as Revision, holding: false, limits: LIMITS };

/** The record of a held domain; `token` makes it this lease's. */
export function domainRecord(domain: string, token: number, holder = 'h'): StateRecord {
  return {
    type: 'domain',
    domain: domain as Domain,
    lease: {
      domain: domain as Domain,
      token: token as Revision,
      requestId: requestId(token),
      holder,
      metadata: [['k', 'v']],
      ttlMs: 15_000,
      coolDownMs: 0,
      grantedAtUnixMs: 1_796_000_000_000,
      owner: '',
      principal: 'p',
      version: 0,
      checkpointLeftMs: undefined,
    },
  };
}

/** The record of requests that finished at these revisions. */
export function finishedRecord(...revisions: number[]): StateRecord {
  const requests = revisions.map((revision): FinishedRequest => ({
    requestId: requestId(revision),
    domain: 'd' as Domain,
    finishedAt: revision as Revision,
    token: (revision - 1) as Revision,
    reason: 'released',
    by: '',
    note: '',
    owner: '',
    asked: { ttlMs: 15_000, holder: 'h', coolDownMs: 0, slots: 1 },
  }));
  return { type: 'finished', lastRevision: (revisions.at(-1) ?? 0) as Revision, requests };
}

/** A waiter, a cool-down and a counting name, all of `name`. */
export function queueRecords(name: string, revision: number): StateRecord[] {
  const of = name as Domain;
  const at = revision as Revision;
  const asks = { requestId: requestId(revision), holder: 'h', metadata: [], ttlMs: 15_000, coolDownMs: 7, slots: 2 };
  const waiter = { ...asks, domain: of, queuedAt: at, waitMs: 9, queuedAtUnixMs: 1, owner: '', principal: 'p' };
  return [
    { type: 'waiter', queuedAt: at, waiter },
    { type: 'coolDown', domain: of, coolDown: { domain: of, since: at, ms: 7 } },
    { type: 'counting', domain: of, counting: { name: of, slots: 2, principal: 'p' } },
  ];
}

function requestId(number: number): RequestId {
  return `00000000-0000-4000-8000-${String(number).padStart(12, '0')}` as RequestId;
}

export function cutAt(index: number, term: number, more: Partial<Cut['changes'] & { keepFrom: number }> = {}): Cut {
  const { keepFrom = 0, ...changes } = more;
  return { meta: meta(index, term), changes: { summary: SUMMARY, put: [], remove: [], ...changes }, keepFrom };
}

/** Everything of a snapshot, as the chunks of one transfer. */
export async function readChunks(reader: SnapshotReader, maxBytes: number, request = 1): Promise<SnapshotChunk[]> {
  const chunks: SnapshotChunk[] = [];
  try {
    for (let chunk = await reader.next(maxBytes); chunk !== undefined; chunk = await reader.next(maxBytes)) {
      chunks.push({ ...chunk, term: 5, request, sequence: chunks.length });
    }
  } finally {
    await reader.close();
  }
  return chunks;
}

/** Remembers what a store reports, and lets a test wait for it. */
export class Reports implements StoreListener {
  readonly lines: string[] = [];
  error: Error | undefined;
  #waiting: { readonly line: string; readonly resolve: () => void; readonly reject: (error: Error) => void }[] = [];

  written(seq: number): void {
    this.#add(`written ${seq}`);
  }

  cutWritten(index: number): void {
    this.#add(`cut ${index}`);
  }

  staged(request: number, sequence: number): void {
    this.#add(`staged ${request}/${sequence}`);
  }

  failed(error: Error): void {
    this.error = error;
    this.#add('failed');
    for (const { reject } of this.#waiting) reject(error);
  }

  /** Resolves when the line is there; rejects when the store fails first. */
  async until(line: string): Promise<void> {
    if (this.lines.includes(line)) return;
    if (this.error !== undefined) throw this.error;
    await new Promise<void>((resolve, reject) => this.#waiting.push({ line, resolve, reject }));
  }

  #add(line: string): void {
    this.lines.push(line);
    for (const waiting of this.#waiting.filter((candidate) => candidate.line === line)) waiting.resolve();
    this.#waiting = this.#waiting.filter((candidate) => candidate.line !== line);
  }
}

const made: string[] = [];

/** A path in a fresh temporary directory; nothing is there yet. */
export async function freshPath(): Promise<string> {
  const parent = await mkdtemp(join(tmpdir(), 'fencepost-storage-'));
  made.push(parent);
  return join(parent, 'data');
}

/** Removes every {@link freshPath}. */
export async function removePaths(): Promise<void> {
  for (const path of made.splice(0)) await rm(path, { recursive: true, force: true });
}

/** What a killed process leaves: the files as they are now. */
export async function copyOf(path: string): Promise<string> {
  const copy = await freshPath();
  await cp(path, copy, { recursive: true });
  return copy;
}
