/** The relation's rules of queues, slots and cool-downs: each notices what it is for. */
import { describe, expect, it } from 'vitest';
import type { Call } from '../../../src/base/api.js';
import { TICK_MS } from '../../../src/base/limits.js';
import type { Effect, Event } from '../../../src/replica/types.js';
import type { Step } from '../observation.js';
import { runChaos } from './chaos.js';
import { effects, events, Tampering } from './tampering.js';
import type { Tamper } from './tampering.js';

type Came = Extract<Event, { readonly type: 'call' | 'forwarded' }>;
type Acquire = Extract<Call, { readonly type: 'acquire' }>;

/** An acquire that is held where it came. */
interface Held {
  readonly event: Came;
  readonly acquire: Acquire;
  /** When it came, by the clock of the node. */
  readonly at: number;
}

/** Shows steps otherwise; knows the acquires that each process is to answer. */
function withHeld(show: (step: Step, held: ReadonlyMap<string, Held>) => Step): Tamper {
  const held = new Map<string, Held>();
  return (step) => {
    const { run } = step.process;
    const shown = show(step, held);
    for (const event of step.events) {
      if (event.type === 'cancel') held.delete(`${run} own ${event.id}`);
      if (event.type === 'forwardCancelled') held.delete(`${run} ${event.from} ${event.id}`);
      if (event.type !== 'call' && event.type !== 'forwarded') continue;
      const { call } = event;
      if (call.type === 'acquire') held.set(keyOf(run, event), { event, acquire: call, at: step.time.nowMs });
    }
    for (const effect of step.effects) {
      if (effect.type === 'answer') held.delete(`${run} own ${effect.id}`);
      if (effect.type === 'forwardResult') held.delete(`${run} ${effect.to} ${effect.id}`);
    }
    return shown;
  };
}

function keyOf(run: number, event: Came): string {
  return `${run} ${event.type === 'call' ? 'own' : event.from} ${event.id}`;
}

/** Whether this process leads, and the request waits in its tables. */
function waitsAt({ context }: Step, { acquire }: Held): boolean {
  if (context.leadership?.ready === undefined) return false;
  const queue = context.lease.queues.get(acquire.domain) ?? [];
  return queue.some(({ requestId }) => requestId === acquire.requestId);
}

/** The relation is told that the callers of waiters went away a while after they came. */
function goneUnseen(): Tamper {
  return withHeld((step, held) => {
    const gone: Event[] = [];
    for (const [key, each] of held) {
      if (!key.startsWith(`${step.process.run} `) || step.time.nowMs < each.at + 150 || !waitsAt(step, each)) continue;
      const { event } = each;
      const { id } = event;
      gone.push(event.type === 'call' ? { type: 'cancel', id } : { type: 'forwardCancelled', from: event.from, id });
    }
    return gone.length === 0 ? step : { ...step, events: [...gone, ...step.events] };
  });
}

/** Answers to acquires that waited are not shown. */
function unanswered(): Tamper {
  return withHeld((step, held) => {
    const { run } = step.process;
    if (step.context.leadership?.ready === undefined) return step;
    const hidden = (effect: Effect): boolean => {
      const key = effect.type === 'answer' ? `${run} own ${effect.id}` : '';
      const each = held.get(key);
      if (each === undefined || effect.type !== 'answer' || effect.result.type !== 'answer') return false;
      const { answer } = effect.result;
      return step.time.nowMs > each.at + 150 && answer.type === 'acquire' && answer.outcome.type === 'granted';
    };
    const { effects: all } = step;
    return all.some(hidden) ? { ...step, effects: all.filter((effect) => !hidden(effect)) } : step;
  });
}

/** The lease tables are shown as `change` says, where it says anything. */
function tables(change: (lease: Step['context']['lease']) => Partial<Step['context']['lease']> | undefined): Tamper {
  return (step) => {
    const changed = change(step.context.lease);
    if (changed === undefined) return step;
    return { ...step, context: { ...step.context, lease: { ...step.context.lease, ...changed } } };
  };
}

const BAD: readonly (readonly [string, RegExp, Tamper])[] = [
  [
    'a waiter who is passed over while somebody calls for it',
    /passes over|ends the wait of .* not over/,
    events((event) => (event.type === 'cancel' || event.type === 'forwardCancelled' ? [] : undefined)),
  ],
  [
    'a waiter who is kept, or granted, though nobody calls for it',
    /for whom nobody calls|nobody waits for/,
    goneUnseen(),
  ],
  ['a waiter who is not told of its grant', /does not answer call|keeps call/, unanswered()],
  [
    'a call that is held for longer than its stream allows',
    /longer than it may/,
    events((event) =>
      event.type === 'forwarded' && event.call.type === 'acquire' && event.call.waitMs > 0
        ? [{ ...event, holdMs: 100 }]
        : undefined,
    ),
  ],
  [
    'a queue in another order',
    /is waited for by/,
    tables(({ queues }) => {
      const turned = new Map([...queues].map(([domain, queue]) => [domain, [...queue].reverse()]));
      return [...queues.values()].some((queue) => queue.length > 1) ? { queues: turned } : undefined;
    }),
  ],
  [
    'a domain that is open before its cool-down ended',
    /domains are closed|is open|is closed/,
    tables(({ coolDowns }) => (coolDowns.size === 0 ? undefined : { coolDowns: new Map() })),
  ],
  [
    'a cool-down of another length',
    /is closed/,
    tables(({ coolDowns }) => {
      const longer = new Map([...coolDowns].map(([domain, closed]) => [domain, { ...closed, ms: closed.ms + 1 }]));
      return coolDowns.size === 0 ? undefined : { coolDowns: longer };
    }),
  ],
  [
    'a name with one slot more',
    /has 3 slots/,
    tables(({ slots }) => {
      const more = new Map(
        [...slots].map(([name, each]) => [
          name,
          { ...each, counting: { ...each.counting, slots: each.counting.slots + 1 } },
        ]),
      );
      return slots.size === 0 ? undefined : { slots: more };
    }),
  ],
  [
    'a slot that is given to two',
    /says that .* holds|otherwise than the leader|waits for/,
    effects((effect, { context }) => {
      if (effect.type !== 'answer' || effect.result.type !== 'answer') return undefined;
      const { answer } = effect.result;
      if (answer.type !== 'acquire' || answer.outcome.type !== 'granted') return undefined;
      const { lease } = answer.outcome;
      const other = [...context.lease.leases.values()].find(({ domain, token }) => {
        return domain !== lease.domain && domain.split('#')[0] === lease.domain.split('#')[0] && token !== lease.token;
      });
      if (other === undefined) return undefined;
      const moved = { ...lease, domain: other.domain };
      return [
        { ...effect, result: { ...effect.result, answer: { ...answer, outcome: { type: 'granted', lease: moved } } } },
      ];
    }),
  ],
  [
    'a domain that is opened early',
    /opens .* early/,
    // It closed later than it did.
    (() => {
      const closed = new Map<number, ReadonlySet<string>>();
      return (step) => {
        const known = closed.get(step.process.run);
        const now = new Set(
          [...step.context.lease.coolDowns.values()].map(({ domain, since }) => `${domain} ${since}`),
        );
        closed.set(step.process.run, now);
        if ([...now].every((each) => known?.has(each) === true)) return step;
        return { ...step, time: { ...step.time, nowMs: step.time.nowMs + TICK_MS } };
      };
    })(),
  ],
];

describe('the reference relation, where clients wait', () => {
  it.each([1, 2, 3, 4, 5, 6])('accepts what the product does under faults, seed %i', async (seed) => {
    const { error, fault, at, grants } = await runChaos(seed, 12_000, undefined, true);
    expect(error).toBeUndefined();
    expect(fault, `at ${at} ms`).toBeUndefined();
    expect(grants).toBeGreaterThan(0);
  });

  it.each(BAD)('rejects %s', async (_, text, tamper) => {
    // Other rules may notice first: of some seed it must be this one.
    let fault: string | undefined;
    for (let seed = 1; seed <= 30 && (fault === undefined || !text.test(fault)); seed++) {
      const result = await runChaos(seed, 12_000, (relation) => new Tampering(relation, tamper), true);
      fault = result.fault?.text ?? fault;
    }
    expect(fault).toMatch(text);
  });
});
