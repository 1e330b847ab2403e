/** How the trace of a lease scenario shows what a call came to. */
import type { CallResult } from '../../src/replica/types.js';

/** One answer in a few words: tokens as offsets from `base`. */
export function outcomeText(result: CallResult, base: number): string {
  if (result.type === 'notLeader') return 'notLeader';
  if (result.type === 'failure') return `failed ${result.failure.reason} ${result.failure.outcome}`;
  const { answer } = result;
  switch (answer.type) {
    case 'acquire':
      if (answer.outcome.type === 'granted') return `granted ${answer.outcome.lease.token - base}`;
      return answer.outcome.type === 'ended' ? `ended ${answer.outcome.ended.reason}` : answer.outcome.reason;
    case 'renew':
      return answer.results.map((state) => (state.type === 'live' ? 'live' : `ended ${state.ended.reason}`)).join(' ');
    case 'verify':
      return answer.outcome.type === 'live' ? 'live' : `ended ${answer.outcome.ended.reason}`;
    case 'release':
      return answer.released ? 'released' : `ended ${answer.ended?.reason ?? ''}`;
    case 'get':
      return answer.lease === undefined ? 'free' : `held ${answer.lease.token - base}`;
    case 'withdraw':
    case 'forceRelease':
    case 'transferLeadership':
    case 'getStatus':
    case 'getStateHash':
      return 'done';
  }
}
