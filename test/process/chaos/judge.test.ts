import { describe, expect, it } from 'vitest';
import type { Answer, LeaseRef, LeaseView } from '../../../src/base/api.js';
import type { Domain, RequestId } from '../../../src/base/ids.js';
import { ZERO_REVISION } from '../../../src/base/revision.js';
import type { Revision } from '../../../src/base/revision.js';
import type { Applied, ClientCall, ClientEvent, Observed } from './events.js';
import { Judge } from './judge.js';
import { domainAnswer, PLAIN } from '../../support/answers.js';

const DOMAIN = 'd' as Domain;
const TTL_MS = 3_000;
let ops = 0;

const ref = (token: number): LeaseRef => ({ domain: DOMAIN, token: token as Revision });

function view(token: number): LeaseView {
  return { ...ref(token), holder: 'h', metadata: [], ttlMs: TTL_MS, grantedAtUnixMs: 0 };
}

/** A call that was sent at `from` and answered at `to`. */
function called(from: number, to: number, call: ClientCall, answer: Answer): ClientEvent[] {
  const op = `op-${++ops}`;
  return [
    { type: 'began', at: from, op, actor: 'a', node: 0, call },
    { type: 'ended', at: to, op, answer, revision: ZERO_REVISION, failed: undefined, reason: '' },
  ];
}

function acquired(from: number, to: number, token: number, request = `request-${token}`): ClientEvent[] {
  const requestId = request as RequestId;
  const call = {
    type: 'acquire',
    domain: DOMAIN,
    requestId,
    holder: request,
    ttlMs: TTL_MS,
    metadata: [],
    ...PLAIN,
    seenRevision: ZERO_REVISION,
  } as const;
  return called(from, to, call, { type: 'acquire', requestId, outcome: { type: 'granted', lease: view(token) } });
}

function released(from: number, to: number, token: number): ClientEvent[] {
  const answer = { type: 'release', released: true, ended: undefined } as const;
  return called(from, to, { type: 'release', lease: ref(token) }, answer);
}

function renewed(from: number, to: number, token: number): ClientEvent[] {
  const answer = { type: 'renew', results: [{ type: 'live', ttlMs: TTL_MS }] } as const;
  return called(from, to, { type: 'renew', leases: [ref(token)] }, answer);
}

function got(from: number, to: number, token: number | undefined): ClientEvent[] {
  const lease = token === undefined ? undefined : view(token);
  const answer = domainAnswer(DOMAIN, lease);
  return called(from, to, { type: 'get', domain: DOMAIN, freshness: 'linearizable' }, answer);
}

function withdrawn(from: number, to: number, request: string): ClientEvent[] {
  const call = { type: 'withdraw', domain: DOMAIN, requestId: request as RequestId } as const;
  return called(from, to, call, { type: 'withdraw' });
}

/** A handle of the library: granted between the two. */
function handed(from: number, at: number, token: number, coolDownMs = 0): ClientEvent[] {
  return [{ type: 'granted', from, at, domain: DOMAIN, token, handle: `handle-${token}`, ttlMs: TTL_MS, coolDownMs }];
}

/** An observer, told between 1 and 2 that it knows everything up to 100. */
function observing(at = 1): ClientEvent[] {
  return [{ type: 'observing', at, observer: 'o', from: 0 }, observed(at + 1, 100)];
}

/** A token is that of a grant, a negative one that of an end at the revision behind it. */
function observed(
  at: number,
  to: number,
  ...tokens: readonly (number | readonly [end: number, at: number])[]
): Observed {
  const leases = tokens.map((each) => {
    if (typeof each === 'number') return { revision: each, domain: DOMAIN, token: each, live: true };
    const [token, revision] = each;
    return { revision, domain: DOMAIN, token, live: false };
  });
  return { type: 'observed', at, observer: 'o', to, leases };
}

function claimed(from: number, at: number, token: number): ClientEvent[] {
  return [{ type: 'claimed', from, at, domain: DOMAIN, token, handle: `handle-${token}` }];
}

function wrote(from: number, at: number, token: number): ClientEvent[] {
  return [{ type: 'wrote', from, at, domain: DOMAIN, token, handle: `handle-${token}`, status: 'applied' }];
}

/** What the judge says of the events, put in the order of their times. */
function judged(...events: readonly (readonly (ClientEvent | Applied)[])[]): string {
  const judge = new Judge();
  for (const event of events.flat().sort((a, b) => a.at - b.at)) judge.add(event);
  judge.look(0);
  return [...judge.violations].join('\n');
}

describe('histories that may be', () => {
  it('leases one after another, by release and by time, with repeated and concurrent calls', () => {
    const first = [...acquired(0, 10, 101), ...acquired(5, 12, 101), ...renewed(500, 510, 101)];
    const second = [...handed(800, 830, 102), ...claimed(900, 900.1, 102), ...wrote(900, 910, 102)];
    // Nobody renews: 104 comes when the safe time of 102 is long over.
    const third = [...acquired(7_000, 7_010, 104), ...got(7_020, 7_030, 104), ...wrote(7_040, 7_050, 104)];
    expect(judged(first, released(700, 720, 101), second, got(910, 920, 102), third)).toBe('');
  });

  it('a get that runs beside an acquire sees either; a release under way may have happened or not', () => {
    expect(judged(acquired(0, 100, 101), got(50, 60, undefined), got(55, 65, 101))).toBe('');
    expect(judged(acquired(0, 10, 101), released(500, 900, 101), got(600, 610, 101), got(620, 630, undefined))).toBe(
      '',
    );
  });

  it('a cool-down that is over, or that a release left out', () => {
    expect(judged(handed(0, 10, 101, 2_000), claimed(100, 101, 101), acquired(5_200, 5_300, 102))).toBe('');
    const given: ClientEvent = { type: 'releasing', at: 200, domain: DOMAIN, token: 101, handle: 'handle-101' };
    expect(judged(handed(0, 10, 101, 2_000), claimed(100, 101, 101), [given], acquired(210, 220, 102))).toBe('');
  });

  it('an observer that sees all that it was told it knows, before and after those whom it concerns', () => {
    const first = [...acquired(5, 10, 101), ...released(700, 720, 101), ...acquired(710, 900, 103)];
    expect(judged(observing(), first, [observed(8, 101, 101), observed(800, 104, [101, 102], 103)])).toBe('');
    // What was granted before it began, and what it is not told of yet.
    expect(
      judged(acquired(0, 1, 99), observing(2), acquired(9_000, 9_010, 120), [observed(9_020, 110, [99, 105])]),
    ).toBe('');
  });

  it('an observer that sees several grants at one revision, as an entry makes that ends several leases', () => {
    const other = { revision: 101, domain: 'other', token: 101, live: true };
    const both = observed(20, 101, 101);
    const more: ClientEvent = { ...both, leases: [...both.leases, other] };
    expect(judged(observing(), acquired(5, 10, 101), [more])).toBe('');
    expect(judged(observing(), [{ ...more, at: 8 }], acquired(5, 10, 101))).toBe('');
  });

  it('an observer that begins anew has seen nothing', () => {
    const events = [...observing(), ...acquired(5, 10, 101), ...released(20, 30, 101)];
    const anew: ClientEvent = { type: 'observing', at: 40, observer: 'o', from: 0 };
    expect(judged(events, [anew, observed(41, 110)], acquired(42, 45, 111), [observed(46, 111, 111)])).toBe('');
  });

  it('a claim whose two looks at the clock lie around a long pause says little', () => {
    expect(judged(handed(0, 10, 101), claimed(100, 9_000, 101), acquired(5_000, 5_010, 102))).toBe('');
  });
});

describe('histories that must not be', () => {
  it.each([
    ['one token twice', /two holders/, [acquired(0, 10, 101, 'x'), acquired(5_000, 5_010, 101, 'y')]],
    ['a lower token later', /after the greater token/, [acquired(0, 10, 102), acquired(9_000, 9_010, 101)]],
    [
      'a claim after the next grant',
      /before the safe time/,
      [handed(0, 10, 101), acquired(2_000, 2_010, 102), claimed(2_020, 2_021, 101)],
    ],
    [
      'a grant inside the safe time of a renewal',
      /before the safe time/,
      [acquired(0, 10, 101), renewed(1_000, 1_010, 101), acquired(3_500, 3_510, 102)],
    ],
    [
      'a grant inside a cool-down',
      /in the cool-down of 101/,
      [handed(0, 10, 101, 2_000), claimed(2_500, 2_501, 101), acquired(4_000, 4_010, 102)],
    ],
    [
      'an observer that misses a grant, acknowledged before',
      /saw no grant of 101/,
      [observing(), acquired(5, 10, 101), [observed(20, 101)]],
    ],
    [
      'an observer that misses a grant, acknowledged after',
      /saw no grant of 101/,
      [observing(), [observed(8, 101)], acquired(5, 10, 101)],
    ],
    ['an observer that sees two live leases', /while 101 was live/, [observing(), [observed(8, 102, 101, 102)]]],
    [
      'an observer that sees an end twice',
      /was not live/,
      [observing(), [observed(8, 103, 101, [101, 102], [101, 103])]],
    ],
    ['an observer that is told of what it knew', /was told of 99/, [observing(), [observed(8, 103, 99)]]],
    [
      'an observer that sees a live lease end',
      /101 .* is gone before its safe time ended: o/,
      [observing(), acquired(5, 10, 101), [observed(11, 101, 101), observed(20, 102, [101, 102])]],
    ],
    [
      'a slot that does not exist',
      /d#3: granted/,
      [handed(0, 10, 101).map((event) => ({ ...event, domain: 'd#3' }) as ClientEvent)],
    ],
    ['a lease that is gone too early', /is gone/, [acquired(0, 10, 101), got(2_000, 2_010, undefined)]],
    [
      'a lease that is live after its release',
      /is live again/,
      [acquired(0, 10, 101), released(20, 30, 101), got(40, 50, 101)],
    ],
    [
      'a lease that is renewed after the next grant',
      /is live after 102/,
      [acquired(0, 10, 101), released(20, 1_000, 101), acquired(30, 40, 102), renewed(50, 60, 101)],
    ],
    [
      'a request that is granted twice',
      /request x was granted/,
      [acquired(0, 10, 101, 'x'), released(20, 30, 101), acquired(40, 50, 102, 'x')],
    ],
    [
      'a request that is granted after its withdrawal',
      /after it had been withdrawn/,
      [withdrawn(0, 10, 'x'), acquired(20, 30, 101, 'x')],
    ],
    ['a lower token at the resource, told by clients', /took a write/, [wrote(0, 10, 102), wrote(20, 30, 101)]],
    [
      'a lower token at the resource, told by itself',
      /committed 101 after 102/,
      [
        [
          { type: 'applied', at: 1, domain: DOMAIN, token: 102 },
          { type: 'applied', at: 2, domain: DOMAIN, token: 101 },
        ] satisfies Applied[],
      ],
    ],
  ])('%s', (_, sentence, events) => {
    expect(judged(...events)).toMatch(sentence);
  });
});
