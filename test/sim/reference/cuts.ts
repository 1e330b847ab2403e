/** The cuts of one process: one at a time, of what is applied and handed to the disk, with every change in it. */
import type { Context } from '../../../src/replica/state.js';
import type { Cut } from '../../../src/replica/types.js';
import { checkCut, recordsOf } from './lease-compare.js';
import type { Table } from './lease-compare.js';
import type { LeaseModel } from './lease-model.js';
import type { RaftModel } from './raft-state.js';

/** See the head of the file. */
export class Cuts {
  /** Index of the cut under way. */
  #underWay: number | undefined;
  readonly #table: Table;

  /** Begins with a table that holds `state`. */
  constructor(state: LeaseModel) {
    this.#table = { records: recordsOf(state), changed: new Set(), revision: state.revision };
  }

  /** These domains changed. */
  changed(domains: Iterable<string>): void {
    for (const domain of domains) this.#table.changed.add(domain);
  }

  /** The member cuts. */
  take(model: RaftModel, leases: LeaseModel, cut: Cut, nowMs: number, fail: (text: string) => void): void {
    const { index, term } = cut.meta;
    if (this.#underWay !== undefined) fail(`cuts at ${index} while the cut at ${this.#underWay} is under way`);
    if (index !== model.commit || (model.log.termAt(index) ?? term) !== term) {
      fail(`cuts at ${index} of term ${term}, applied is ${model.commit}`);
    }
    if (index > model.handed) fail(`cuts at ${index}, the log was handed over up to ${model.handed}`);
    if (cut.keepFrom > index + 1) fail(`a cut at ${index} forgets the log up to ${cut.keepFrom - 1}`);
    checkCut(leases, this.#table, cut, fail);
    this.#underWay = index;
    model.pendingWrites.set('cut', nowMs);
  }

  /** A cut is durable; one of before an installed snapshot says nothing. */
  written(model: RaftModel, index: number): void {
    model.pendingWrites.delete('cut');
    if (this.#underWay !== index) return;
    model.cut = Math.max(model.cut, index);
    this.#underWay = undefined;
  }

  /** A snapshot took the place of the table. */
  replaced(model: RaftModel, state: LeaseModel): void {
    this.#underWay = undefined;
    model.cut = Math.max(model.cut, state.index);
    const { records, changed } = this.#table;
    records.clear();
    changed.clear();
    for (const record of recordsOf(state)) records.add(record);
    this.#table.revision = state.revision;
  }

  /** A cut that waits behind one that the store dropped counts as begun when that one is reported. */
  follow({ pendingWrites }: RaftModel, { cuts, time }: Readonly<Context>, fail: (text: string) => void): void {
    const { underWay } = cuts;
    if (underWay?.meta.index !== this.#underWay) fail(`has a cut at ${underWay?.meta.index ?? 'none'} under way`);
    if (underWay !== undefined && !pendingWrites.has('cut')) pendingWrites.set('cut', time.nowMs);
  }
}
