/**
 * FORM: new members begin one history, with directories that it lists, on clocks that are close together, and its base is
 * above every clock of theirs and, where contract 1's condition holds, above everything issued before (F1–F3). Judged by
 * the machines' clocks, not by what forming says of them.
 */
import type { Incarnation, NodeId } from '../../../src/base/ids.js';
import { MAX_FORMING_CLOCK_SPREAD_MS } from '../../../src/base/limits.js';
import type { Machine } from '../machine.js';
import type { Process, Report } from '../observation.js';

/** Rates of clocks and the way of an answer, in milliseconds, beside what forming allows two clocks to differ. */
const CLOCK_TOLERANCE_MS = 500;

/** What a clock showed when its member first started since it is new: it is asked for its clock after that. */
interface FirstStart {
  readonly wallMs: number;
  readonly at: number;
  readonly machine: Machine;
}

/** See the head of the file. */
export class FormingJudge {
  readonly #now: () => number;
  readonly #report: Report;
  readonly #starts = new Map<NodeId, FirstStart>();
  /** What was known of the clocks when a history was made. */
  readonly #known = new Map<Incarnation, readonly FirstStart[]>();
  /** The one history that may exist since the members were last new. */
  #incarnation: Incarnation | undefined;

  /** `now`: true time. */
  constructor(now: () => number, report: Report) {
    this.#now = now;
    this.#report = report;
  }

  /** Every member is new from here. */
  anew(): void {
    this.#incarnation = undefined;
    this.#starts.clear();
  }

  /** An operator set the clocks: what they showed before says nothing. */
  clocksSet(): void {
    this.#starts.clear();
  }

  /** A member makes a history: what starts after that, was not asked. */
  decided(incarnation: Incarnation): void {
    this.#known.set(incarnation, [...this.#starts.values()]);
  }

  /** A process starts, whatever its disk holds. */
  started(node: NodeId, machine: Machine): void {
    if (!this.#starts.has(node)) this.#starts.set(node, { wallMs: machine.wallMs, at: this.#now(), machine });
  }

  /**
   * A process runs its replica; `issued` is the greatest revision issued so far. For the first one of a history returns
   * whether contract 1 promises that its tokens are greater than all before: the greatest clock was ahead of them.
   */
  runs({ member, genesis }: Process, issued: number): { readonly ahead: boolean } | undefined {
    const { incarnation, history, members } = genesis;
    if (!members.some(({ directory }) => directory === member.directory)) {
      this.#fault(`${member.node} runs with a directory that ${incarnation} does not list`);
    }
    if (this.#incarnation === incarnation) return undefined;
    if (this.#incarnation !== undefined) {
      this.#fault(`${member.node} begins ${incarnation}, others ${this.#incarnation}`);
      return undefined;
    }
    this.#incarnation = incarnation;
    const starts = this.#known.get(incarnation);
    if (starts === undefined) {
      this.#fault(`nobody made ${incarnation}`);
      return undefined;
    }
    const steady = starts.filter((start) => this.#isSteady(start));
    const greatestUs = Math.max(0, ...steady.map(({ wallMs }) => Math.floor(wallMs) * 1_000));
    if (history.base < greatestUs) {
      this.#fault(`base ${history.base} is below a member's clock, which was ${greatestUs}`);
    }
    const errors = starts.map(({ wallMs, at }) => wallMs - at);
    const apartMs = Math.max(...errors) - Math.min(...errors);
    if (steady.length === starts.length && apartMs > MAX_FORMING_CLOCK_SPREAD_MS + CLOCK_TOLERANCE_MS) {
      this.#fault(`a history begins though two clocks are ${apartMs.toFixed(0)} ms apart`);
    }
    const ahead = greatestUs > issued;
    if (ahead && history.base <= issued) this.#fault(`base ${history.base} is not above ${issued}, issued before`);
    return { ahead };
  }

  /** It has not jumped since. */
  #isSteady({ wallMs, at, machine }: FirstStart): boolean {
    return Math.abs(machine.wallMs - wallMs - (this.#now() - at) * machine.rate) < 1;
  }

  #fault(text: string): void {
    this.#report({ code: 'FORM', text });
  }
}
