/**
 * Messages on their way. Order of sending is order of delivery, except for what a scenario holds. A held message is
 * late, not lost: it is delivered when the scenario says so, whatever the links do by then.
 */
import type { Message } from '../../src/raft/types.js';
import type { Cut } from './disk.js';
import { KINDS, memberText } from './text.js';

/** A message under way; an installSnapshot comes with the staged cut. */
export interface Packet {
  readonly id: number;
  readonly message: Message;
  readonly cut: Cut | undefined;
}

/** Which messages a command or a claim speaks of: `[first|last] [A>B] [AE] [t2] [m7]`, each part optional, `*` any member. */
export interface Pattern {
  readonly text: string;
  readonly pick: 'all' | 'first' | 'last';
  readonly from: string;
  readonly to: string;
  readonly kind: string;
  readonly term: number | undefined;
  readonly id: number | undefined;
}

/** Reads a {@link Pattern}; throws on a word that is none. */
export function parsePattern(words: readonly string[]): Pattern {
  let pattern: Pattern = {
    text: words.join(' '),
    pick: 'all',
    from: '*',
    to: '*',
    kind: '*',
    term: undefined,
    id: undefined,
  };
  for (const word of words) {
    const link = /^([A-Z]\d?|\*)>([A-Z]\d?|\*)$/.exec(word);
    if (word === 'first' || word === 'last') pattern = { ...pattern, pick: word };
    else if (link !== null) pattern = { ...pattern, from: link[1] ?? '*', to: link[2] ?? '*' };
    else if (/^t\d+$/.test(word)) pattern = { ...pattern, term: Number(word.slice(1)) };
    else if (/^m\d+$/.test(word)) pattern = { ...pattern, id: Number(word.slice(1)) };
    else if (Object.values(KINDS).includes(word)) pattern = { ...pattern, kind: word };
    else throw new Error(`not a part of a message pattern: ${word}`);
  }
  return pattern;
}

/** True when `packet` is one of those that `pattern` means. */
export function matches(pattern: Pattern, { message, id }: Packet): boolean {
  return (
    (pattern.from === '*' || pattern.from === memberText(message.from)) &&
    (pattern.to === '*' || pattern.to === memberText(message.to)) &&
    (pattern.kind === '*' || pattern.kind === KINDS[message.type]) &&
    (pattern.term === undefined || pattern.term === message.term) &&
    (pattern.id === undefined || pattern.id === id)
  );
}

/** See the file's comment. */
export class Network {
  readonly flying: Packet[] = [];
  readonly held: Packet[] = [];
  /** Everything ever sent, for duplicates and for claims. */
  readonly sent: Packet[] = [];
  readonly holds: Pattern[] = [];
  readonly #cuts = new Set<string>();

  /** Registers a new message; the caller decides what becomes of it. */
  register(message: Message, cut: Cut | undefined): Packet {
    const packet = { id: this.sent.length + 1, message, cut };
    this.sent.push(packet);
    return packet;
  }

  /** What happens to a message sent now. */
  fate({ message, id, cut }: Packet): 'cut' | 'held' | 'flying' {
    if (this.isCut(message.from.node, message.to.node)) return 'cut';
    return this.holds.some((hold) => matches(hold, { message, id, cut })) ? 'held' : 'flying';
  }

  isCut(from: string, to: string): boolean {
    return this.#cuts.has(`${from}>${to}`);
  }

  /** `A/BC` partitions, `A>B` cuts one way, `A-B` both ways. */
  cut(text: string): void {
    const link = /^([A-Z])([>-])([A-Z])$/.exec(text);
    if (link !== null) {
      const [, from = '', direction, to = ''] = link;
      this.#cuts.add(`${from}>${to}`);
      if (direction === '-') this.#cuts.add(`${to}>${from}`);
      return;
    }
    if (!/^[A-Z]+(\/[A-Z]+)+$/.test(text)) throw new Error(`not a cut: ${text}`);
    const groups = text.split('/');
    for (const group of groups) {
      for (const other of groups) {
        if (group !== other) for (const from of group) for (const to of other) this.#cuts.add(`${from}>${to}`);
      }
    }
  }

  /** All links are up again. */
  heal(): void {
    this.#cuts.clear();
  }

  /** The newest message that `pattern` means, whatever became of it; the oldest with `first`. */
  last(pattern: Pattern): Packet {
    const found = this.sent.filter((packet) => matches(pattern, packet));
    const packet = pattern.pick === 'first' ? found[0] : found.at(-1);
    if (packet === undefined) throw new Error(`no message was "${pattern.text}"`);
    return packet;
  }

  /** Takes the held messages that `pattern` means out of the network. */
  take(pattern: Pattern): Packet[] {
    const found = this.held.filter((packet) => matches(pattern, packet));
    const picked = pattern.pick === 'all' ? found : pattern.pick === 'first' ? found.slice(0, 1) : found.slice(-1);
    for (const packet of picked) this.held.splice(this.held.indexOf(packet), 1);
    return picked;
  }
}
