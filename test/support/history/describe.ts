/** Operations as text for people. */
import type { Answer, EndedView, LeaseState } from '../../../src/base/api.js';
import type { JudgedCall, Operation } from './operations.js';

/** `c1 [12, 15] acquire orders 4f… -> granted 17 (at 18)`. */
export function describe(operation: Operation): string {
  const { client, call, invokedAt, returnedAt, outcome } = operation;
  const returned = outcome.type === 'answer' && returnedAt !== undefined ? round(returnedAt) : '…';
  const told = outcome.type === 'answer' ? `${answerText(outcome.answer)} (at ${outcome.revision})` : outcome.type;
  return `${client} [${round(invokedAt)}, ${returned}] ${callText(call)} -> ${told}`;
}

function callText(call: JudgedCall): string {
  switch (call.type) {
    case 'acquire':
    case 'withdraw':
      return `${call.type} ${call.domain} ${call.requestId}`;
    case 'renew':
      return `renew ${call.leases.map(({ domain, token }) => `${domain} ${token}`).join(', ')}`;
    case 'release':
      return `release ${call.lease.domain} ${call.lease.token}`;
    case 'verify':
      return `verify ${call.lease.domain} ${call.lease.token} ${call.freshness}`;
    case 'get':
      return `get ${call.domain} ${call.freshness}`;
    case 'forceRelease':
      return `forceRelease ${call.domain} ${call.token}`;
  }
}

function answerText(answer: Answer): string {
  switch (answer.type) {
    case 'acquire': {
      const { outcome } = answer;
      if (outcome.type === 'granted') return `granted ${outcome.lease.token}`;
      if (outcome.type === 'ended') return endedText(outcome.ended);
      if (outcome.type === 'queued') return `queued ${outcome.position} ${outcome.current?.token ?? ''}`.trim();
      return `${outcome.reason} ${outcome.current?.token ?? ''}`.trim();
    }
    case 'renew':
      return answer.results.map(stateText).join(', ');
    case 'verify':
      return stateText(answer.outcome);
    case 'release':
      return answer.released || answer.ended === undefined ? 'released' : endedText(answer.ended);
    case 'withdraw':
      return 'withdrawn';
    case 'get':
      return answer.lease === undefined ? 'free' : `live ${answer.lease.token}`;
    case 'forceRelease':
      return `${answer.released ? 'released' : 'not live'}, current ${answer.currentToken}`;
    case 'list':
    case 'changeLimits':
    case 'transferLeadership':
    case 'getStatus':
    case 'getStateHash':
      return answer.type;
  }
}

function stateText(state: LeaseState): string {
  return state.type === 'live' ? 'live' : endedText(state.ended);
}

function endedText({ lease, reason, currentToken }: EndedView): string {
  return `ended ${lease?.token ?? 'without a lease'}: ${reason}, current ${currentToken}`;
}

function round(time: number): number {
  return Math.round(time * 100) / 100;
}
