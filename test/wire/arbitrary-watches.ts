/** Random watches and their messages, all within the limits. */
import fc from 'fast-check';
import type { ChangeView, WatchCall, WatchNews } from '../../src/base/watch.js';
import type { WatchMessage } from '../../src/wire/public-watch.js';
import * as any from './arbitraries.js';
import { ended, header, leaseView } from './arbitrary-answers.js';

const ref = fc.record({ domain: any.leasedDomain, token: any.token });

export const watchCall: fc.Arbitrary<WatchCall> = fc.record({ prefix: any.text, startRevision: any.revision });

export const change: fc.Arbitrary<ChangeView> = fc.oneof(
  fc.record({ revision: any.token, type: fc.constant('granted' as const), lease: leaseView }),
  fc.record({
    revision: any.token,
    type: fc.constant('ended' as const),
    ended: fc.tuple(ended, ref).map(([end, lease]) => ({ ...end, lease })),
  }),
  fc.record({
    revision: any.token,
    type: fc.constant('queueChanged' as const),
    domain: any.leasedDomain,
    queueLength: any.uint32,
  }),
);

export const news: fc.Arbitrary<WatchNews> = fc.oneof(
  fc.record({ type: fc.constant('events' as const), events: fc.array(change, { minLength: 1, maxLength: 4 }) }),
  fc.record({ type: fc.constant('progress' as const) }),
  fc.record({ type: fc.constant('compacted' as const), oldest: any.token }),
);

export const watchMessage: fc.Arbitrary<WatchMessage> = fc.record({ header, news });
