import { beforeEach, describe, expect, it } from 'vitest';
import { memoryFence } from '../../src/guard/memory.js';
import type { FencedLease, MemoryFence } from '../../src/guard/memory.js';

const PROD = { cluster: 'prod', incarnation: 'a'.repeat(32) };
const lease = (token: number | bigint, more: Partial<FencedLease> = {}): FencedLease => ({
  domain: 'plotter',
  token: BigInt(token),
  ...PROD,
  ...more,
});

/** A device that notes what it is told. */
class Device {
  readonly done: string[] = [];
}

/** An effect that the test ends. */
class Effect {
  end: () => void = () => undefined;
  readonly begun: Promise<void>;
  #begin: () => void = () => undefined;

  constructor() {
    this.begun = new Promise((resolve) => {
      this.#begin = resolve;
    });
  }

  run(): Promise<void> {
    this.#begin();
    return new Promise((resolve) => {
      this.end = resolve;
    });
  }
}

let device: Device;
let fence: MemoryFence<Device>;

beforeEach(() => {
  device = new Device();
  fence = memoryFence(device);
});

const draw = (of: FencedLease | readonly FencedLease[], what: string) =>
  fence.run(of, (act) =>
    act(({ done }) => {
      done.push(what);
    }),
  );

describe('the fence', () => {
  it.each([undefined, null, 'plotter'])('of what is no lease: %s', async (none) => {
    const error = `not a lease: ${String(none)}. What tryAcquire gives is undefined when nothing was granted`;
    const given = none as unknown as FencedLease;
    await expect(draw(given, 'a')).rejects.toThrow(error);
    await expect(draw([lease(5), given], 'a')).rejects.toThrow(error);
    await expect(fence.open(given)).rejects.toThrow(error);
    expect(() => {
      fence.reset(given);
    }).toThrow(error);
    expect(device.done).toEqual([]);
    expect(fence.fence('plotter')).toBeUndefined();
  });

  it('takes what is not lower, and raises', async () => {
    expect(await draw(lease(5), 'a')).toEqual({ status: 'applied', value: undefined, earlierIncarnation: undefined });
    expect((await draw(lease(5), 'b')).status).toBe('applied');
    expect((await draw(lease(6), 'c')).status).toBe('applied');
    expect(await draw(lease(5), 'late')).toEqual({ status: 'stale', fence: 6n });
    expect(device.done).toEqual(['a', 'b', 'c']);
    expect(fence.fence('plotter')).toEqual({ token: 6n, issuer: 'fencepost:prod', incarnation: PROD.incarnation });
    expect(fence.fence('nobody')).toBeUndefined();
  });

  it('does not call the work of a stale lease', async () => {
    await fence.open(lease(6));
    const called = fence.run(lease(5), () => {
      throw new Error('called');
    });
    expect(await called).toEqual({ status: 'stale', fence: 6n });
  });

  it('stands raised also when the work throws, because what it did is not undone', async () => {
    const failing = fence.run(lease(6), async (act) => {
      await act(({ done }) => {
        done.push('half');
      });
      throw new Error('no paper');
    });
    await expect(failing).rejects.toThrow('no paper');
    expect(device.done).toEqual(['half']);
    expect((await draw(lease(5), 'late')).status).toBe('stale');
    expect((await draw(lease(6), 'again')).status).toBe('applied');
  });

  it('is one for each domain, and an operation on two raises both or none', async () => {
    const both = (a: number, b: number) => [lease(b, { domain: 'b' }), lease(a, { domain: 'a' })];
    expect((await draw(both(5, 7), 'first')).status).toBe('applied');
    expect(await draw(both(6, 6), 'late')).toEqual({ status: 'stale', fence: 7n });
    expect(fence.fence('a')?.token).toBe(5n);
    expect(fence.fence('b')?.token).toBe(7n);
    expect(device.done).toEqual(['first']);
  });

  it('is the same for every guard in front of one resource', async () => {
    await memoryFence(device).open(lease(6));
    expect((await draw(lease(5), 'late')).status).toBe('stale');
    expect((await memoryFence(new Device()).open(lease(5))).status).toBe('applied');
  });

  it('belongs to one cluster until an operator says otherwise, and is set back by hand alone', async () => {
    await draw(lease(5), 'a');
    expect(await draw(lease(9, { cluster: 'staging' }), 'b')).toMatchObject({ status: 'rejected', reason: 'issuer' });
    expect(fence.allowIssuer('nobody', 'staging')).toBe(false);
    expect(fence.allowIssuer('plotter', 'staging')).toBe(true);
    expect((await draw(lease(9, { cluster: 'staging' }), 'c')).status).toBe('applied');
    fence.reset(lease(7));
    expect((await draw(lease(6), 'late')).status).toBe('stale');
    expect((await draw(lease(7), 'd')).status).toBe('applied');
    expect(() => {
      fence.reset(lease(0));
    }).toThrow('token');
    expect(device.done).toEqual(['a', 'c', 'd']);
  });
});

describe('a tenure', () => {
  it('acts until a greater one has opened', async () => {
    const opened = await fence.open(lease(5));
    if (opened.status !== 'applied') throw new Error(opened.status);
    const { value: tenure } = opened;
    expect(tenure).toMatchObject({ domain: 'plotter', token: 5n });
    expect(await tenure.run((act) => act(({ done }) => done.push('a')))).toMatchObject({ status: 'applied', value: 1 });
    expect((await fence.open(lease(6))).status).toBe('applied');
    expect((await tenure.run((act) => act(({ done }) => done.push('late')))).status).toBe('stale');
    expect(device.done).toEqual(['a']);
  });
});

describe('one after another', () => {
  it('is of the lease as it was when it was asked for', async () => {
    const effect = new Effect();
    const first = fence.run(lease(5), (act) => act(() => effect.run()));
    await effect.begun;
    const mutable = { ...lease(5) };
    const opened = fence.open(mutable);
    mutable.token = 7n;
    effect.end();
    await first;
    expect(await opened).toMatchObject({ status: 'applied', value: { token: 5n } });
  });

  it('runs of a domain wait for each other: what was admitted before the raise is done before it', async () => {
    const effect = new Effect();
    const order: string[] = [];
    const slow = fence.run(lease(5), (act) => act(() => effect.run())).then(() => order.push('slow'));
    await effect.begun;
    const next = fence.open(lease(6)).then(() => order.push('next'));
    const elsewhere = await fence.open(lease(1, { domain: 'other' }));
    expect(elsewhere.status).toBe('applied');
    expect(fence.fence('plotter')?.token).toBe(5n);
    effect.end();
    await Promise.all([slow, next]);
    expect(order).toEqual(['slow', 'next']);
  });

  it('operations on the same domains, named in any order, do not wait for one another for ever', async () => {
    const [a, b] = [lease(5, { domain: 'a' }), lease(5, { domain: 'b' })];
    const outcomes = await Promise.all([draw([a, b], '1'), draw([b, a], '2'), draw(b, '3'), draw([a, b], '4')]);
    expect(outcomes.map(({ status }) => status)).toEqual(Array.from({ length: 4 }, () => 'applied'));
    expect(device.done).toHaveLength(4);
  });

  it('an effect that nobody waited for is over before the next run begins', async () => {
    const effect = new Effect();
    let over = false;
    const forgotten: Promise<unknown>[] = [];
    await fence.run(lease(5), (act) => {
      forgotten.push(act(() => effect.run().then(() => (over = true))));
    });
    const next = fence.run(lease(6), () => over);
    // Time enough to begin too early.
    await new Promise((resolve) => setImmediate(resolve));
    effect.end();
    await Promise.all(forgotten);
    expect(await next).toMatchObject({ status: 'applied', value: true });
  });
});

describe('work that takes too long', () => {
  const impatient = (): MemoryFence<Device> => memoryFence(device, { workTimeoutMs: 20 });

  it('is given up, begins nothing more, and does not keep its successor out', async () => {
    let wake: () => void = () => undefined;
    let late: Promise<unknown> = Promise.resolve();
    const hanging = impatient().run(lease(5), async (act) => {
      await new Promise<void>((resolve) => {
        wake = resolve;
      });
      late = act(({ done }) => done.push('late'));
      await late;
    });
    const next = impatient().run(lease(6), (act) => act(({ done }) => done.push('next')));
    await expect(hanging).rejects.toThrow('workTimeoutMs = 20');
    expect((await next).status).toBe('applied');
    wake();
    await Promise.resolve();
    await expect(late).rejects.toThrow('is over');
    expect(device.done).toEqual(['next']);
  });

  it('with an effect that has begun is told, and its successor waits for the end of that effect', async () => {
    const effect = new Effect();
    let told: unknown;
    const hanging = impatient().run(lease(5), (act) =>
      act(async ({ done }, signal) => {
        signal.addEventListener('abort', () => {
          told = signal.reason;
        });
        await effect.run();
        done.push('slow');
      }),
    );
    const next = impatient().run(lease(6), (act) => act(({ done }) => done.push('next')));
    await expect(hanging).rejects.toThrow('the next run waits for that');
    expect(told).toMatchObject({ message: 'the time of the guarded run is up' });
    expect(fence.fence('plotter')?.token).toBe(5n);
    effect.end();
    expect((await next).status).toBe('applied');
    expect(device.done).toEqual(['slow', 'next']);
  });

  it('has a limit in milliseconds', () => {
    for (const workTimeoutMs of [0, 1.5, 3_600_001])
      expect(() => memoryFence(device, { workTimeoutMs })).toThrow('workTimeoutMs must be an integer');
  });
});

describe('the handle', () => {
  it('is of no use after its run', async () => {
    let kept: Parameters<Parameters<typeof fence.run>[1]>[0] | undefined;
    await fence.run(lease(5), (act) => {
      kept = act;
    });
    await expect(kept?.(({ done }) => done.push('late'))).rejects.toThrow('is over');
    expect(device.done).toEqual([]);
  });

  it('passes on what an effect throws, and a lease has to be one', async () => {
    const failing = fence.run(lease(5), (act) =>
      act(() => {
        throw new Error('jam');
      }),
    );
    await expect(failing).rejects.toThrow('jam');
    await expect(draw(lease(0), 'a')).rejects.toThrow('token');
    await expect(draw([], 'a')).rejects.toThrow('one at least');
  });
});
