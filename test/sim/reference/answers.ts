/** The answers that leave in one step, held against the state that they speak of, the calls that wait, and the grounds. */
import type { Effect } from '../../../src/replica/types.js';
import { checkAuthority } from './authority.js';
import type { Grounds } from './authority.js';
import type { Calls } from './calls.js';
import { checkContents } from './contents.js';
import type { LeaseModel } from './lease-model.js';

type Answer = Extract<Effect, { readonly type: 'answer' | 'forwardResult' }>;

/** See the head of the file. */
export class Answers {
  readonly #calls: Calls;
  readonly #fail: (text: string) => void;
  /** Answers of the step under way, by the index of the state that they speak of. */
  #answers = new Map<number, Answer[]>();

  constructor(calls: Calls, fail: (text: string) => void) {
    this.#calls = calls;
    this.#fail = fail;
  }

  /** A step begins, at whose end the answers in `effects` leave. */
  begin(effects: readonly Effect[], { base, start }: LeaseModel): void {
    if (this.#answers.size > 0) this.#answers.clear();
    for (const effect of effects) {
      if (effect.type !== 'answer' && effect.type !== 'forwardResult') continue;
      const { result } = effect;
      const index = result.type === 'answer' ? result.revision - base + start : -1;
      const known = this.#answers.get(index);
      if (known === undefined) this.#answers.set(index, [effect]);
      else known.push(effect);
    }
  }

  /** Checks the answers that speak of the state that has been reached. */
  checkContents(leases: LeaseModel): void {
    const answers = this.#answers.get(leases.index);
    if (answers === undefined) return;
    for (const effect of answers) {
      const { result } = effect;
      const [call] = this.#calls.find(effect.type === 'answer' ? '' : effect.to, effect.id);
      if (call === undefined || result.type !== 'answer' || call.passed === result) continue;
      checkContents(leases, call.call, result.answer, this.#fail);
    }
  }

  /** All of the step leave. */
  leave(grounds: Grounds): void {
    for (const answers of this.#answers.values()) for (const answer of answers) this.#judge(grounds, answer);
  }

  /** A result leaves: for a call that waits for it, once, and with good reason. */
  #judge(grounds: Grounds, effect: Answer): void {
    const from = effect.type === 'answer' ? '' : effect.to;
    const call = this.#calls.find(from, effect.id).find((each) => !each.answered);
    const { result } = effect;
    if (call === undefined) {
      this.#fail(`answers call ${effect.id} of ${from === '' ? 'a client' : from}, which nobody waits for`);
      return;
    }
    if (effect.type === 'answer' && call.passed !== undefined) {
      const { passed } = call;
      const weaker =
        passed.type === 'failure' && result.type === 'failure' && passed.failure.reason === result.failure.reason;
      if (passed !== result && !weaker) this.#fail(`answers call ${effect.id} otherwise than the leader did`);
      if (call.attempted && result.type === 'failure' && result.failure.outcome === 'not-done') {
        this.#fail(`says that nothing came of call ${effect.id}, which was passed on before`);
      }
    } else {
      const { header } = effect.type === 'answer' ? effect : { header: undefined };
      if (header !== undefined && result.type === 'answer' && header.revision !== result.revision) {
        this.#fail(`answers call ${effect.id} with revision ${header.revision}, of the state at ${result.revision}`);
      }
      checkAuthority(grounds, call, result);
    }
    call.answered = true;
    this.#calls.end(call);
  }
}
