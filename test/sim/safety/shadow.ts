/**
 * What a member's disk must hold: kept from what its replica handed over and what was reported durable, by code that
 * knows nothing of the store. A start is held against it: exactly what was reported, or that and some of what was
 * handed over after it, in order (a write that had reached the disk and was not reported any more).
 */
import type { HardState, LogWrite, Member, Position } from '../../../src/raft/types.js';
import type { Loaded } from '../../../src/replica/types.js';
import type { DiskView } from '../../scenario/invariants.js';

/** Hard state and log. */
interface Image {
  readonly hard: HardState;
  readonly anchor: Position;
  /** Terms of the entries behind the anchor. */
  readonly terms: readonly number[];
}

type Waiting =
  | { readonly type: 'log'; readonly write: LogWrite }
  | { readonly type: 'cut'; readonly index: number; readonly keepFrom: number };

/** See the head of the file. */
export class Shadow implements DiskView {
  readonly member: Member;
  #image: Image;
  /** The newest durable state of the machine. */
  cut: number;
  #waiting: Waiting[] = [];

  constructor(member: Member, loaded: Loaded) {
    this.member = member;
    this.#image = imageOf(loaded);
    this.cut = loaded.snapshot.index;
  }

  get hard(): HardState {
    return this.#image.hard;
  }

  get last(): number {
    return this.#image.anchor.index + this.#image.terms.length;
  }

  termAt(index: number): number | undefined {
    const { anchor, terms } = this.#image;
    return index === anchor.index ? anchor.term : terms[index - anchor.index - 1];
  }

  /** The replica handed a write over. */
  submitted(write: LogWrite): void {
    this.#waiting.push({ type: 'log', write });
  }

  /** The replica handed a cut over. */
  cutSubmitted(index: number, keepFrom: number): void {
    this.#waiting.push({ type: 'cut', index, keepFrom });
  }

  /** The store reported a write, and with it all before it. */
  written(seq: number): void {
    this.#perform((waiting) => waiting.type === 'log' && waiting.write.seq === seq);
  }

  /** The store reported a cut. */
  cutWritten(index: number): void {
    this.#perform((waiting) => waiting.type === 'cut' && waiting.index === index);
  }

  /** What is wrong with what a start found; undefined when it is what it must be. Afterwards that is what counts. */
  restarted(loaded: Loaded): string | undefined {
    const fault = this.faultOf(loaded);
    this.#image = imageOf(loaded);
    this.cut = loaded.snapshot.index;
    this.#waiting = [];
    return fault;
  }

  /** Likewise, of what a start would find now. */
  faultOf(loaded: Loaded): string | undefined {
    const found = imageOf(loaded);
    let image = this.#image;
    let { cut } = this;
    for (let at = 0; ; at++) {
      if (sameImage(image, found) && cut <= loaded.snapshot.index) return undefined;
      const waiting = this.#waiting[at];
      if (waiting === undefined) break;
      if (waiting.type === 'log') {
        image = written(image, waiting.write);
        if (waiting.write.install !== undefined) cut = waiting.write.install.index;
      } else cut = Math.max(cut, waiting.index);
    }
    return `found ${textOf(found)}, reported durable was ${textOf(this.#image)}`;
  }

  #perform(isLast: (waiting: Waiting) => boolean): void {
    const end = this.#waiting.findIndex(isLast);
    for (const waiting of this.#waiting.splice(0, end + 1)) {
      if (waiting.type === 'log') {
        this.#image = written(this.#image, waiting.write);
        if (waiting.write.install !== undefined) this.cut = waiting.write.install.index;
      } else this.cut = Math.max(this.cut, waiting.index);
    }
  }
}

function imageOf({ hard, anchor, entries }: Loaded): Image {
  return { hard, anchor, terms: entries.map(({ term }) => term) };
}

function written(image: Image, { hard, cutFrom, entries, install }: LogWrite): Image {
  const anchor = install === undefined ? image.anchor : { index: install.index, term: install.term };
  const before = install === undefined ? image.terms : [];
  const kept = cutFrom === undefined ? before : before.slice(0, Math.max(0, cutFrom - anchor.index - 1));
  return { hard, anchor, terms: entries.length === 0 ? kept : [...kept, ...entries.map(({ term }) => term)] };
}

/** Equal, but that `found` may have been compacted further: what lies behind a cut may go, whole blocks at a time. */
function sameImage(image: Image, found: Image): boolean {
  const { hard } = image;
  if (hard.term !== found.hard.term || hard.vote?.node !== found.hard.vote?.node) return false;
  const shift = found.anchor.index - image.anchor.index;
  if (shift < 0 || shift > image.terms.length) return false;
  if (shift > 0 && image.terms[shift - 1] !== found.anchor.term) return false;
  const { length } = found.terms;
  return image.terms.length - shift === length && found.terms.every((term, at) => term === image.terms[at + shift]);
}

function textOf({ hard, anchor, terms }: Image): string {
  const end = anchor.index + terms.length;
  return `term ${hard.term} vote ${hard.vote?.node ?? 'none'}, entries ${anchor.index + 1} to ${end} (last of term ${terms.at(-1) ?? anchor.term})`;
}
