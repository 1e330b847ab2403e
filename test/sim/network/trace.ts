/** What the network tells the trace, in the notation of scenario files with node ids for names. */
import type { NodeId } from '../../../src/base/ids.js';
import type { Entry, Message } from '../../../src/raft/types.js';
import type { Event } from '../../../src/replica/types.js';
import { KINDS, positionText } from '../../scenario/text.js';

/** `n1>n2 AE t3 prev 4@2 [2 3] commit 4`: of entries the terms only. */
export function messageLine(message: Message): string {
  return `${message.from.node}>${message.to.node} ${KINDS[message.type]} t${message.term}${bodyText(message)}`;
}

/** What a process is told, as one line; undefined for what is a matter of clients and disks, and for messages. */
export function eventText(node: NodeId, event: Event): string | undefined {
  switch (event.type) {
    case 'message':
      return messageLine(event.message);
    case 'hello':
      return `${node} hears hello of ${event.node} boot ${event.boot.slice(0, 4)}`;
    case 'streamEnded':
    case 'unreachable':
    case 'forwardLost':
    case 'forwarderLost':
      return `${node} ${event.type} ${event.node}`;
    case 'probed':
      return `${node} probed ${event.node} ${event.outcome}`;
    case 'forwarded':
      return `${event.from}>${node} call ${event.id} ${event.call.type}`;
    case 'forwardCancelled':
      return `${event.from}>${node} cancel ${event.id}`;
    case 'forwardResult':
      return `${event.from}>${node} result ${event.id} ${event.result.type}`;
    case 'chunk':
      return `${event.from.node}>${node} chunk ${event.chunk.request}.${event.chunk.sequence} of ${positionText(event.chunk.meta)}`;
    case 'chunksEnded':
      return `${node} chunksEnded ${event.from.node}`;
    case 'snapshotSent':
      return `${node} snapshotSent ${event.to.node} ${event.index} ${event.ok ? 'ok' : 'failed'}`;
    case 'tick':
    case 'call':
    case 'cancel':
    case 'written':
    case 'cutWritten':
    case 'staged':
    case 'diskFree':
    case 'watch':
    case 'watchReady':
    case 'watchClosed':
    case 'stop':
      return undefined;
  }
}

function bodyText(m: Message): string {
  switch (m.type) {
    case 'preVote':
    case 'vote':
      return ` last ${positionText(m.last)}`;
    case 'preVoteReply':
    case 'voteReply':
      return m.granted ? ' yes' : ' no';
    case 'append':
      return ` prev ${positionText(m.prev)} [${termsText(m.entries)}] commit ${m.commit}`;
    case 'appendReply':
      return m.result.type === 'proved' ? ` proved ${m.result.index}` : ` conflict hint ${positionText(m.result.hint)}`;
    case 'heartbeat':
      return ` round ${m.round} commit ${m.commit}`;
    case 'heartbeatReply':
      return ` round ${m.round}`;
    case 'installSnapshot':
    case 'timeoutNow':
    case 'notMember':
      return '';
  }
}

function termsText(entries: readonly Entry[]): string {
  let text = '';
  for (const { term } of entries) text += text === '' ? String(term) : ` ${term}`;
  return text;
}
