/** How the trace of a lease scenario shows entries, messages and answers. */
import type { Entry, Message } from '../../src/raft/types.js';
import type { CallResult } from '../../src/replica/types.js';
import { commandCodec } from '../../src/wire/command.js';

/** How entries are shown: the command's type, and the domains that it names. */
export function commandText(entry: Entry): string {
  if (entry.kind !== 'command') return '';
  const command = commandCodec.decode(entry.payload);
  const domains =
    'domain' in command
      ? [command.domain]
      : 'leases' in command
        ? command.leases.map((each) => each.domain)
        : 'domains' in command
          ? command.domains.map((each) => each.domain)
          : [];
  return [command.type, ...domains].join('-');
}

/** Heartbeats and empty appends are the clockwork: a trace with them in it shows nothing else. */
export function isDull(message: Message): boolean {
  const { type } = message;
  return type === 'heartbeat' || type === 'heartbeatReply' || (type === 'append' && message.entries.length === 0);
}

/** One answer in a few words: tokens as offsets from `base`. */
export function outcomeText(result: CallResult, base: number): string {
  if (result.type === 'notLeader') return 'notLeader';
  if (result.type === 'failure') return `failed ${result.failure.reason} ${result.failure.outcome}`;
  const { answer } = result;
  switch (answer.type) {
    case 'acquire':
      if (answer.outcome.type === 'granted') return `granted ${answer.outcome.lease.token - base}`;
      if (answer.outcome.type === 'queued') return `queued ${answer.outcome.position}`;
      return answer.outcome.type === 'ended' ? `ended ${answer.outcome.ended.reason}` : answer.outcome.reason;
    case 'renew':
      return answer.results.map((state) => (state.type === 'live' ? 'live' : `ended ${state.ended.reason}`)).join(' ');
    case 'verify':
      return answer.outcome.type === 'live' ? 'live' : `ended ${answer.outcome.ended.reason}`;
    case 'release':
      return answer.released ? 'released' : `ended ${answer.ended?.reason ?? ''}`;
    case 'get':
      return answer.lease === undefined ? 'free' : `held ${answer.lease.token - base}`;
    case 'list':
    case 'withdraw':
    case 'forceRelease':
    case 'transferLeadership':
    case 'changeLimits':
    case 'getStatus':
    case 'getStateHash':
      return 'done';
  }
}
