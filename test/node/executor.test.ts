import { expect, it } from 'vitest';
import { createExecutor } from '../../src/node/executor.js';
import type { Store, StoreListener } from '../../src/replica/ports.js';
import type { Replica } from '../../src/replica/replica.js';
import type { Effect } from '../../src/replica/types.js';

it('an executor carries nothing out behind a write that failed at once (P13)', () => {
  const carried: string[] = [];
  const failures: string[] = [];
  let listener: StoreListener | undefined;
  const store = {
    listen: (given: StoreListener) => {
      listener = given;
    },
    write: () => {
      carried.push('persist');
      listener?.failed(new Error('EIO'));
    },
  } as unknown as Store;
  const serving: Effect = { type: 'serving', serving: true, leader: undefined };
  const persist = { type: 'persist', write: {} } as unknown as Effect;
  const replica = { step: () => [serving, persist, serving] } as unknown as Replica;
  const executor = createExecutor(replica, {
    store,
    peers: { perform: () => undefined, chunkStaged: () => undefined },
    clients: { answer: () => undefined },
    watchers: { perform: () => undefined },
    time: () => ({ nowMs: 0, unixMs: 0 }),
    schedule: (turn) => {
      turn();
    },
    observer: {
      log: () => undefined,
      serving: () => {
        carried.push('serving');
      },
      stopped: () => undefined,
      failed: (cause) => {
        failures.push(cause);
      },
    },
  });
  executor.dispatch({ type: 'tick' });
  executor.dispatch({ type: 'tick' });
  expect(carried).toEqual(['serving', 'persist']);
  expect(failures).toEqual(['disk']);
});
