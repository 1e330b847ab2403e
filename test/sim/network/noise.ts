/** What becomes of core messages on a stream: lost, doubled, overtaken, or followed by one of long ago. */
import { nextInt } from '../../../src/base/random.js';
import { messageLine } from './trace.js';
import type { MessagePart, Part } from './part.js';
import type { Stream } from './stream.js';
import type { Manner, Wire } from './wire.js';

/** How many messages between two are remembered, to come again. */
const REMEMBERED = 64;
/** Of how many messages one is remembered: so that those of minutes ago are among them. */
const REMEMBER_ONE_OF = 8;
/** A second copy leaves at most so many greatest latencies after the first. */
const LATE_FACTOR = 10;

type Deliver = (part: Part, manner: Manner) => void;

/** See the head of the file. */
export class Noise {
  readonly #wire: Wire;
  /** By sender (with its directory) and receiver, within one history. */
  readonly #remembered = new Map<string, MessagePart[]>();

  constructor(wire: Wire) {
    this.#wire = wire;
  }

  /** Puts a part from the dialler of `stream` on its way; `take` gets what arrives. `history` is its incarnation. */
  send(stream: Stream, history: string, part: Part, take: (part: Part) => void): void {
    const deliver: Deliver = (each, manner) => {
      stream.send(
        'dialer',
        () => {
          take(each);
        },
        manner,
      );
    };
    if (part.type !== 'message') {
      deliver(part, 'inOrder');
      if (part.type === 'chunk' && this.#comesTwice(part)) deliver(part, 'inOrder');
      return;
    }
    const { parameters, surroundings } = this.#wire;
    const { coverage, trace, scheduler } = surroundings;
    if (parameters.loss > 0 && this.#wire.chance(parameters.loss)) {
      coverage.count('message lost');
      trace(`lost ${messageLine(part.sent)}`);
    } else deliver(part, parameters.reorder ? 'alone' : 'inOrder');
    if (parameters.duplicate > 0 && this.#wire.chance(parameters.duplicate)) {
      coverage.count('message duplicated');
      const laterMs = this.#wire.between(0, LATE_FACTOR * parameters.latencyMs[1]);
      if (laterMs < parameters.latencyMs[1]) deliver(part, 'inOrder');
      else {
        scheduler.after(laterMs, () => {
          deliver(part, 'past');
        });
      }
    }
    if (parameters.replay > 0) this.#replay(history, part, deliver);
  }

  #comesTwice({ carried }: Extract<Part, { readonly type: 'chunk' }>): boolean {
    const { parameters, surroundings } = this.#wire;
    if (parameters.chunkTwice === 0 || !this.#wire.chance(parameters.chunkTwice)) return false;
    if (carried().total !== undefined) return false;
    surroundings.coverage.count('chunk doubled');
    return true;
  }

  #replay(history: string, part: MessagePart, deliver: Deliver): void {
    const { from, to } = part.sent;
    const { random, coverage } = this.#wire.surroundings;
    const between = `${history} ${from.node} ${from.directory} ${to.node}`;
    let remembered = this.#remembered.get(between);
    if (remembered === undefined) this.#remembered.set(between, (remembered = []));
    if (remembered.length > 0 && this.#wire.chance(this.#wire.parameters.replay)) {
      const again = remembered[nextInt(random, 0, remembered.length - 1)];
      if (again !== undefined) {
        coverage.count('message replayed');
        deliver(again, 'past');
      }
    }
    if (nextInt(random, 1, REMEMBER_ONE_OF) > 1) return;
    if (remembered.length < REMEMBERED) remembered.push(part);
    else remembered[nextInt(random, 0, REMEMBERED - 1)] = part;
  }
}
