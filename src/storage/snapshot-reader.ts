/** Reads the newest durable cut, from a fixed view of the database: later cuts, and a switch, do not disturb it. */
import { addDigest, digestText, sameDigest, ZERO_DIGEST } from '../base/digest.js';
import type { StateRecord } from '../lease/types.js';
import type { SnapshotReader } from '../replica/ports.js';
import type { SnapshotChunk } from '../replica/types.js';
import { CorruptBytes } from '../wire/corrupt.js';
import { metaKey, POINTER_KEY, RECORD_KEY_OFFSET, recordRange } from '../wire/disk.js';
import { decodeCutMeta, decodePointer, type CutMeta } from '../wire/disk-records.js';
import { decodeStateRecord } from '../wire/state.js';
import { plainBytes, type Database, type DatabaseIterator, type DatabaseView } from './database.js';
import { recordDigest } from './table-sum.js';

/** Records that one read asks LevelDB for. */
const READ_RECORDS = 256;

type Chunk = Omit<SnapshotChunk, 'term' | 'request' | 'sequence'>;

/** One pass over a cut. */
export class TableReader implements SnapshotReader {
  readonly #database: Database;
  readonly #view: DatabaseView;
  #opened: { readonly meta: CutMeta; readonly records: DatabaseIterator } | undefined;
  #ahead: [Uint8Array, Uint8Array][] = [];
  #count = 0;
  #sum = ZERO_DIGEST;
  #done = false;

  /** The view is taken now. */
  constructor(database: Database) {
    this.#database = database;
    this.#view = database.snapshot();
  }

  /** See the port. Throws `CorruptBytes` when the table does not have the count and sum of its meta record. */
  async next(maxBytes: number): Promise<Chunk | undefined> {
    if (this.#done) return undefined;
    this.#opened ??= await this.#open();
    const { meta, records: source } = this.#opened;
    const records: StateRecord[] = [];
    let bytes = 0;
    for (;;) {
      if (this.#ahead.length === 0) this.#ahead = await source.nextv(READ_RECORDS);
      const entry = this.#ahead[0];
      if (entry === undefined) break;
      const key = plainBytes(entry[0]).subarray(RECORD_KEY_OFFSET);
      const value = plainBytes(entry[1]);
      if (records.length > 0 && bytes + key.length + value.length > maxBytes) break;
      this.#ahead.shift();
      bytes += key.length + value.length;
      records.push(decodeStateRecord(key, value));
      this.#count++;
      this.#sum = addDigest(this.#sum, recordDigest(key, value));
    }
    const common = { meta: meta.snapshot, summary: meta.summary, records };
    if (this.#ahead.length > 0) return { ...common, total: undefined };
    if (this.#count !== meta.count || !sameDigest(this.#sum, meta.sum)) {
      throw new CorruptBytes(`the state table at ${meta.snapshot.index}`, 'count or sum of its records is wrong');
    }
    this.#done = true;
    return { ...common, total: { count: this.#count, digest: digestText(this.#sum) } };
  }

  /** See the port. */
  async close(): Promise<void> {
    this.#done = true;
    await this.#opened?.records.close();
    await this.#view.close();
  }

  /** Pointer and meta record come from the same view as the records. */
  async #open(): Promise<{ readonly meta: CutMeta; readonly records: DatabaseIterator }> {
    const snapshot = this.#view;
    const prefix = decodePointer(await this.#get(POINTER_KEY, 'the pointer to the state table'));
    const meta = decodeCutMeta(await this.#get(metaKey(prefix), "the meta record of the state's cut"));
    return { meta, records: this.#database.iterator({ ...recordRange(prefix), snapshot }) };
  }

  async #get(key: Uint8Array, what: string): Promise<Uint8Array> {
    const value = await this.#database.get(key, { snapshot: this.#view });
    if (value === undefined) throw new CorruptBytes(what, 'is missing');
    return value;
  }
}
