/** Shows the relation another step than the one that happened: it must notice. */
import type { Context } from '../../../src/replica/state.js';
import type { Effect, Event } from '../../../src/replica/types.js';
import type { Observer, Process, Step } from '../observation.js';
import type { Loaded } from '../../../src/replica/types.js';

/** What is shown instead of `step`; the step itself where there is nothing to change. */
export type Tamper = (step: Step) => Step;

/** See the head of the file. */
export class Tampering implements Observer {
  /** Steps that were shown otherwise than they were. */
  changed = 0;
  readonly #relation: Observer;
  readonly #tamper: Tamper;

  constructor(relation: Observer, tamper: Tamper) {
    this.#relation = relation;
    this.#tamper = tamper;
  }

  started(process: Process, loaded: Loaded, context: Readonly<Context>): void {
    this.#relation.started(process, loaded, context);
  }

  stepped(step: Step): void {
    const shown = this.#tamper(step);
    if (shown !== step) this.changed++;
    this.#relation.stepped(shown);
  }

  ended(process: Process): void {
    this.#relation.ended(process);
  }
}

/** Maps each effect to what is shown of it: itself, others, or none. */
export function effects(change: (effect: Effect, step: Step) => readonly Effect[] | undefined): Tamper {
  return (step) => {
    const shown = mapped(step.effects, (effect) => change(effect, step));
    return shown === undefined ? step : { ...step, effects: shown };
  };
}

/** Likewise for events. */
export function events(change: (event: Event, step: Step) => readonly Event[] | undefined): Tamper {
  return (step) => {
    const shown = mapped(step.events, (event) => change(event, step));
    return shown === undefined ? step : { ...step, events: shown };
  };
}

/** Undefined when nothing was changed. */
function mapped<T>(items: readonly T[], change: (item: T) => readonly T[] | undefined): T[] | undefined {
  const changed = items.map(change);
  if (changed.every((others) => others === undefined)) return undefined;
  return items.flatMap((item, at) => changed[at] ?? [item]);
}

/** Shows another core than the one that ran, where `change` gives fields of it. */
export function core(change: (raft: Context['raft'], step: Step) => Partial<Context['raft']> | undefined): Tamper {
  return (step) => {
    const changed = change(step.context.raft, step);
    if (changed === undefined) return step;
    return { ...step, context: { ...step.context, raft: { ...step.context.raft, ...changed } } };
  };
}
