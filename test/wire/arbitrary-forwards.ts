/** Random calls that are passed on, and their results. */
import fc from 'fast-check';
import type { Call, ForwardableCall } from '../../src/base/api.js';
import type { CallResult } from '../../src/replica/types.js';
import type { ForwardedCall, ForwardedResult } from '../../src/wire/forward.js';
import * as any from './arbitraries.js';
import { call, failure, forwardableAnswer } from './arbitrary-answers.js';

const isForwardable = (made: Call): made is ForwardableCall =>
  made.type !== 'getStatus' && made.type !== 'getStateHash';

export const forwardedCall: fc.Arbitrary<ForwardedCall> = fc.record({
  id: any.count,
  term: any.count,
  principal: fc.record({ name: any.name, authenticated: fc.boolean() }),
  timeoutMs: any.uint32,
  holdMs: any.uint32,
  call: call.filter(isForwardable),
});
const result: fc.Arbitrary<CallResult> = fc.oneof(
  fc.record({ type: fc.constant('answer' as const), answer: forwardableAnswer, revision: any.revision }),
  fc.record({ type: fc.constant('failure' as const), failure }),
  fc.record({
    type: fc.constant('notLeader' as const),
    outcome: fc.constantFrom('not-done' as const, 'unknown' as const),
  }),
);
export const forwardedResult: fc.Arbitrary<ForwardedResult> = fc.record({ id: any.count, result });
