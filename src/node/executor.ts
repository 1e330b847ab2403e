/**
 * The one place that orders effects (design 4). It gathers the events of one turn of the loop, hands them to the
 * replica as one batch, and carries out what comes back, in order, through the ports. It has no clock and no timer of
 * its own: `schedule` and `time` are given, so that the simulator runs this very file.
 */
import type { ClientPort, PeerPort, Store, WatchPort } from '../replica/ports.js';
import type { Replica } from '../replica/replica.js';
import type { Effect, Event, Time } from '../replica/types.js';

/** What the executor works with. */
export interface ExecutorPorts {
  readonly store: Store;
  readonly peers: PeerPort;
  readonly clients: ClientPort;
  readonly watchers: WatchPort;
  /** Reads both clocks. */
  readonly time: () => Time;
  /** Runs `turn` soon, after the input that is waiting now was dispatched (`setImmediate`). */
  readonly schedule: (turn: () => void) => void;
  readonly observer: ExecutorObserver;
}

/** What the surroundings want to know; nothing of it changes what the executor does. */
export interface ExecutorObserver {
  log(effect: Extract<Effect, { readonly type: 'log' }>): void;
  serving(effect: Extract<Effect, { readonly type: 'serving' }>): void;
  /** The replica has nothing under way after `stop`. */
  stopped(): void;
  /** The disk refused a write (exit code 74) or an assertion failed (exit code 70). Nothing is carried out any more. */
  failed(cause: 'disk' | 'assertion', error: Error): void;
}

/** Drives one replica. */
export interface Executor {
  /** Queues an event for the next turn. */
  dispatch(event: Event): void;
  /** Nothing is handled any more. */
  halt(): void;
}

/** Starts listening to the store and drives `replica` from then on. */
export function createExecutor(replica: Replica, ports: ExecutorPorts): Executor {
  const { store, peers, clients, watchers, time, schedule, observer } = ports;
  let inbox: Event[] = [];
  let scheduled = false;
  let halted = false;

  const isHalted = (): boolean => halted;

  const fail = (cause: 'disk' | 'assertion', error: Error): void => {
    if (halted) return;
    halted = true;
    observer.failed(cause, error);
  };

  const dispatch = (event: Event): void => {
    if (halted) return;
    inbox.push(event);
    if (scheduled) return;
    scheduled = true;
    schedule(turn);
  };

  function turn(): void {
    scheduled = false;
    if (halted) return;
    const events = inbox;
    inbox = [];
    try {
      for (const effect of replica.step(time(), events)) {
        perform(effect);
        // A write that failed at once: nothing that follows from it may leave.
        if (isHalted()) return;
      }
    } catch (error) {
      fail('assertion', error instanceof Error ? error : new Error(String(error)));
    }
  }

  function perform(effect: Effect): void {
    switch (effect.type) {
      case 'persist':
        store.write(effect.write);
        return;
      case 'cut':
        store.cut(effect.cut);
        return;
      case 'stage':
        store.stage(effect.chunk);
        return;
      case 'send':
      case 'forward':
      case 'forwardCancel':
      case 'forwardResult':
      case 'probe':
      case 'sendSnapshot':
      case 'abortSnapshot':
      case 'refuseChunks':
      case 'chunksDone':
        peers.perform(effect);
        return;
      case 'answer':
        clients.answer(effect.id, effect.header, effect.result);
        return;
      case 'watchNews':
      case 'watchFailed':
        watchers.perform(effect);
        return;
      case 'serving':
        observer.serving(effect);
        return;
      case 'log':
        observer.log(effect);
        return;
      case 'stopped':
        observer.stopped();
    }
  }

  store.listen({
    written: (seq) => {
      dispatch({ type: 'written', seq });
    },
    cutWritten: (index) => {
      dispatch({ type: 'cutWritten', index });
    },
    staged: (request, sequence) => {
      peers.chunkStaged(request, sequence);
      dispatch({ type: 'staged', request, sequence });
    },
    failed: (error) => {
      fail('disk', error);
    },
  });

  return {
    dispatch,
    halt: () => {
      halted = true;
    },
  };
}
