/** Questions while forming: one call each, on a connection of its own. The twin of `transport/forming.ts`. */
import type { NodeId } from '../../../src/base/ids.js';
import type { FormRequest, FormResponse } from '../../../src/replica/types.js';
import type { FormingEndpoint } from '../ports.js';
import type { Network } from './dialling.js';
import { Pipe } from './wire.js';

/** One question. */
export interface Question {
  readonly from: NodeId;
  readonly to: NodeId;
  readonly request: FormRequest;
  readonly timeoutMs: number;
  /** Called at most once; undefined when there is no answer. */
  readonly done: (response: FormResponse | undefined) => void;
  /** Who listens at `to` now. */
  readonly forming: () => FormingEndpoint | undefined;
}

/** Asks; the function that it returns gives the question up, and then `done` is not called any more. */
export function ask(network: Network, { from, to, request, timeoutMs, done, forming }: Question): () => void {
  const { wire, carriage } = network;
  const { scheduler, coverage, trace } = wire.surroundings;
  const there = new Pipe(wire, from, to);
  const back = new Pipe(wire, to, from);
  let over = false;
  const finish = (response: FormResponse | undefined, told = true): void => {
    if (over) return;
    over = true;
    cancelTimer();
    there.close();
    back.close();
    if (told) done(response);
  };
  const cancelTimer = scheduler.after(timeoutMs, () => {
    coverage.count('forming ask timed out');
    finish(undefined);
  });
  const carried = carriage.formRequest(request);
  network.knock(from, to, (answer) => {
    if (over) return;
    if (answer === 'refused') {
      coverage.count('forming ask refused');
      finish(undefined);
      return;
    }
    there.send(() => {
      const endpoint = forming();
      trace(`${from}>${to} form ask`);
      // Nobody any more: the connection is reset.
      if (endpoint === undefined) {
        back.send(() => {
          finish(undefined);
        });
        return;
      }
      endpoint.answer(carried(), (response) => {
        // A process that is gone answers nothing.
        if (forming() !== endpoint) return;
        const answered = carriage.formResponse(response);
        back.send(() => {
          if (over) return;
          trace(`${to}>${from} form answer`);
          finish(answered());
        });
      });
    });
  });
  return () => {
    finish(undefined, false);
  };
}
