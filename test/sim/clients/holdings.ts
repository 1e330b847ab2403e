/** What a session knows of leases: those that it may act on, those that it heard of, and those that it gave back. */
import type { LeaseRef } from '../../../src/base/api.js';
import { chance, pick } from '../chance.js';
import type { Random } from '../../../src/base/random.js';

/** What it may act on, until a moment of its own monotonic clock (rule 1). */
export interface Held extends LeaseRef {
  readonly incarnation: string;
  readonly ttlMs: number;
  untilMs: number;
}

/** See the head of the file. One entry may grant several domains, so a lease is a domain and a token. */
export class Holdings {
  readonly #random: Random;
  #held: Held[] = [];
  #known: LeaseRef[] = [];
  /** Ids that were withdrawn, what ids were granted, and what was given back. */
  readonly #given = new Set<string>();
  readonly #granted = new Map<string, string>();
  readonly #released = new Set<string>();

  constructor(random: Random) {
    this.#random = random;
  }

  /** What it may act on at `nowMs`. */
  heldAt(nowMs: number): readonly Held[] {
    return this.#held.filter(({ untilMs }) => nowMs < untilMs);
  }

  /** Something that it holds, in `perMille` of a thousand cases; else something that it knows of. Empty: nothing. */
  some(perMille: number): readonly LeaseRef[] {
    const from: readonly LeaseRef[] =
      this.#held.length > 0 && chance(this.#random, perMille) ? this.#held : this.#known;
    return from.map(({ domain, token }) => ({ domain, token }));
  }

  /** One that it knows of. */
  known(): LeaseRef | undefined {
    return this.#known.length === 0 ? undefined : pick(this.#random, this.#known);
  }

  /** A lease is about to be released. */
  release(lease: LeaseRef): void {
    this.#released.add(keyOf(lease));
    this.#giveUp(keyOf(lease));
  }

  /** An id is about to be withdrawn: whatever it was granted, or will be, is over from here. */
  withdraw(requestId: string): void {
    this.#given.add(requestId);
    const key = this.#granted.get(requestId);
    if (key !== undefined) this.#giveUp(key);
  }

  #giveUp(key: string): void {
    for (const held of this.#held) if (keyOf(held) === key) this.#released.add(key);
    this.#held = this.#held.filter((held) => keyOf(held) !== key);
  }

  /** An id is told its grant; true when for the first time. */
  told(requestId: string, lease: LeaseRef): boolean {
    const fresh = !this.#granted.has(requestId);
    this.#granted.set(requestId, keyOf(lease));
    return fresh;
  }

  /** It holds what `requestId` was granted, unless that is too late or was given back. */
  hold(requestId: string, lease: Held, nowMs: number): void {
    const { domain, token, untilMs } = lease;
    if (!this.#known.some((ref) => keyOf(ref) === keyOf(lease))) this.#known.push({ domain, token });
    if (this.#known.length > 12) this.#known.shift();
    if (nowMs >= untilMs || this.#given.has(requestId) || this.#released.has(keyOf(lease))) return;
    const held = this.#held.find((each) => keyOf(each) === keyOf(lease));
    if (held === undefined) this.#held.push(lease);
    else held.untilMs = Math.max(held.untilMs, untilMs);
  }

  /** What a renewal said of a lease; `untilMs` is undefined when it has ended. */
  renewed(lease: LeaseRef, untilMs: number | undefined, nowMs: number): void {
    const held = this.#held.find((each) => keyOf(each) === keyOf(lease));
    if (held === undefined) return;
    if (untilMs === undefined || nowMs >= held.untilMs) this.#held = this.#held.filter((each) => each !== held);
    else held.untilMs = Math.max(held.untilMs, untilMs);
  }

  /** The session is another. */
  forget(): void {
    this.#held = [];
  }
}

function keyOf({ domain, token }: LeaseRef): string {
  return `${domain} ${token}`;
}
