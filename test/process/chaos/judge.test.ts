import { describe, expect, it } from 'vitest';
import type { Answer, LeaseRef, LeaseView } from '../../../src/base/api.js';
import type { Domain, RequestId } from '../../../src/base/ids.js';
import { ZERO_REVISION } from '../../../src/base/revision.js';
import type { Revision } from '../../../src/base/revision.js';
import type { Applied, ClientCall, ClientEvent } from './events.js';
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
function handed(from: number, at: number, token: number, handle = `handle-${token}`): ClientEvent[] {
  return [{ type: 'granted', from, at, domain: DOMAIN, token, handle, ttlMs: TTL_MS }];
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
