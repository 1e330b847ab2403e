/**
 * What was typed, read so that every fault is found: the argument parser alone stops at the first. A command reads its
 * operands and options one after the other, then calls `finish`, which throws if anything was wrong.
 */
import { domainFault } from '../base/domain.js';
import { type Domain, isNodeId, type NodeId, parseRequestId, type RequestId } from '../base/ids.js';
import { type Revision, ZERO_REVISION } from '../base/revision.js';
import { UsageFaults } from '../node/usage-faults.js';

/** The words of a command line after the command's name. */
export interface Words {
  /** Operands, and flags that the command does not know. */
  readonly rest: readonly string[];
  /** How many at the end of `rest` stand behind `--` and are operands whatever they look like. */
  readonly literal: number;
  /** By flag name without dashes; `true` for a flag without a value. */
  readonly options: Readonly<Record<string, unknown>>;
}

/** See the file's head. */
export class Input {
  readonly #operands: string[] = [];
  /** How many at the end of the operands stand behind `--`. */
  readonly #literal: number;
  readonly #options: Readonly<Record<string, unknown>>;
  readonly #faults: string[] = [];

  constructor(words: Words) {
    this.#options = words.options;
    this.#literal = words.literal;
    const flags = words.rest.length - words.literal;
    words.rest.forEach((word, at) => {
      if (at < flags && word.startsWith('-') && word !== '-')
        this.#faults.push(`there is no flag ${word}${this.#meant(word)}`);
      else this.#operands.push(word);
    });
  }

  /** Faults so far, for a command that adds them to those of a configuration. */
  get faults(): readonly string[] {
    return this.#faults;
  }

  /** Adds a fault that only the command can see. */
  fault(text: string): void {
    this.#faults.push(text);
  }

  /** Throws {@link UsageFaults} if anything was wrong, an operand too many among it. */
  finish(command: string): void {
    this.refuseRest();
    if (this.#faults.length > 0)
      throw new UsageFaults(`fencepost ${command} cannot be run (fencepost ${command} --help)`, this.#faults);
  }

  /** Every operand that is left is one too many. The word behind an unknown flag may be its value: not reported twice. */
  refuseRest(): void {
    if (this.#faults.length > 0) return;
    for (const word of this.#operands.splice(0)) this.#faults.push(`nothing is expected at ${JSON.stringify(word)}`);
  }

  /** The next operand, or undefined. */
  optionalOperand(): string | undefined {
    return this.#operands.shift();
  }

  /** The next operand; a fault when there is none. */
  operand(name: string): string {
    const word = this.#operands.shift();
    if (word === undefined) this.#faults.push(`${name} is missing`);
    return word ?? '';
  }

  /** Everything behind `--`, to be read before the operands in front of it; empty when there is nothing. */
  behindDashes(): readonly string[] {
    return this.#literal === 0 ? [] : this.#operands.splice(-this.#literal);
  }

  /** The next operand as a domain. */
  domain(): Domain {
    const text = this.operand('the domain');
    const fault = text === '' ? undefined : domainFault(text);
    if (fault !== undefined) this.#faults.push(`domain ${JSON.stringify(text)} ${fault}`);
    return text as Domain;
  }

  /** The next operand as a token. */
  token(): Revision {
    return this.#revision('the token', this.operand('the token'));
  }

  /** The next operand, if there is one, as the name of a node. */
  optionalNode(): NodeId | undefined {
    const text = this.optionalOperand();
    if (text === undefined || isNodeId(text)) return text;
    this.#faults.push(`node ${JSON.stringify(text)} must be 1–63 characters of [A-Za-z0-9._-]`);
    return undefined;
  }

  /** A flag without a value. */
  has(flag: string): boolean {
    return this.#options[flag] !== undefined;
  }

  /** What stands behind a flag, or `true` for nothing, for whoever reports that by itself. */
  value(flag: string): string | true | undefined {
    const value = this.#options[flag];
    return typeof value === 'string' || value === true ? value : undefined;
  }

  /** The value of a flag. */
  text(flag: string): string | undefined {
    const value = this.value(flag);
    if (value !== true) return value;
    this.#faults.push(`--${flag} needs a value`);
    return undefined;
  }

  /** The values of a flag that may be repeated. */
  texts(flag: string): readonly string[] {
    const value = this.#options[flag];
    if (value === true) this.#faults.push(`--${flag} needs a value`);
    return Array.isArray(value) ? value.filter((one) => typeof one === 'string') : [];
  }

  /** The value of a flag as a whole number from `low` to `high`. */
  integer(flag: string, low: number, high: number): number | undefined {
    const text = this.text(flag);
    if (text === undefined) return undefined;
    const value = /^\d{1,15}$/.test(text) ? Number(text) : NaN;
    if (value >= low && value <= high) return value;
    this.#faults.push(`--${flag} must be a whole number from ${low} to ${high}, not ${JSON.stringify(text)}`);
    return undefined;
  }

  /** The value of a flag as a revision. */
  revision(flag: string): Revision | undefined {
    const text = this.text(flag);
    return text === undefined ? undefined : this.#revision(`--${flag}`, text);
  }

  /** The value of a flag as a UUID. */
  requestId(flag: string): RequestId | undefined {
    const text = this.text(flag);
    if (text === undefined) return undefined;
    const id = parseRequestId(text);
    if (id === undefined) this.#faults.push(`--${flag} must be a UUID, not ${JSON.stringify(text)}`);
    return id;
  }

  /** `; did you mean --token?` when a flag of the command is at most two letters away. */
  #meant(word: string): string {
    const typed = word.replace(/^-+/, '').split('=')[0] ?? '';
    const near = Object.keys(this.#options).find((flag) => lettersApart(typed, flag) <= 2);
    return near === undefined ? '' : `; did you mean --${near}?`;
  }

  #revision(name: string, text: string): Revision {
    if (text === '') return ZERO_REVISION;
    const value = /^[1-9]\d{0,15}$/.test(text) ? Number(text) : NaN;
    if (Number.isSafeInteger(value)) return value as Revision;
    this.#faults.push(`${name} must be a positive number of at most 16 digits, not ${JSON.stringify(text)}`);
    return ZERO_REVISION;
  }
}

/** Levenshtein distance. */
function lettersApart(a: string, b: string): number {
  let row = Array.from({ length: b.length + 1 }, (_, at) => at);
  for (const [i, letter] of Array.from(a).entries()) {
    const next = [i + 1];
    for (const [j, other] of Array.from(b).entries())
      next.push(Math.min((next[j] ?? 0) + 1, (row[j + 1] ?? 0) + 1, (row[j] ?? 0) + (letter === other ? 0 : 1)));
    row = next;
  }
  return row.at(-1) ?? 0;
}
