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
    let changed = false;
    const shown = step.effects.flatMap((effect) => {
      const others = change(effect, step);
      if (others !== undefined) changed = true;
      return others ?? [effect];
    });
    return changed ? { ...step, effects: shown } : step;
  };
}

/** Likewise for events. */
export function events(change: (event: Event, step: Step) => readonly Event[] | undefined): Tamper {
  return (step) => {
    let changed = false;
    const shown = step.events.flatMap((event) => {
      const others = change(event, step);
      if (others !== undefined) changed = true;
      return others ?? [event];
    });
    return changed ? { ...step, events: shown } : step;
  };
}

/** Shows another core than the one that ran, where `change` gives fields of it. */
export function core(change: (raft: Context['raft'], step: Step) => Partial<Context['raft']> | undefined): Tamper {
  return (step) => {
    const changed = change(step.context.raft, step);
    if (changed === undefined) return step;
    return { ...step, context: { ...step.context, raft: { ...step.context.raft, ...changed } } };
  };
}
