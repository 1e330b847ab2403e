/** Calls that need no leader: what this node knows, stamped with what it has applied. */
import { SHOWN_WAITERS } from '../base/api.js';
import type {
  Answer,
  Call,
  DomainView,
  GetAnswer,
  GetStatusAnswer,
  ListAnswer,
  ListCall,
  MemberView,
} from '../base/api.js';
import type { Domain } from '../base/ids.js';
import { revisionAt } from '../base/revision.js';
import { hashState } from '../lease/hash.js';
import { leaseOf, listNames, queueOf } from '../lease/lookup.js';
import { sameMember } from '../raft/member.js';
import { commitIndex, followers, lastIndex, leaderOf, roleName, stableIndex } from '../raft/view.js';
import type { Context } from './state.js';
import type { CallResult } from './types.js';
import { deadlineOf } from './clock.js';
import { coolDownLeftMs } from './cooling.js';
import { limitsAlarm, sharedLimits } from './limits.js';
import { leaseState, leaseView, waiterView } from './views.js';

/** The answer, or undefined when the call has to go to the leader. */
export function answerHere(context: Context, call: Call): CallResult | undefined {
  const answer = answerFor(context, call);
  if (answer === undefined) return undefined;
  return { type: 'answer', answer, revision: revisionAt(context.genesis.history, context.applied) };
}

function answerFor(context: Context, call: Call): Answer | undefined {
  switch (call.type) {
    case 'getStatus':
      return status(context);
    case 'getStateHash':
      return {
        type: 'getStateHash',
        node: context.options.self.node,
        revision: revisionAt(context.genesis.history, context.applied),
        hash: hashState(context.lease),
      };
    case 'verify':
      if (call.freshness !== 'local') return undefined;
      return { type: 'verify', outcome: leaseState(context.lease, call.lease) };
    case 'get':
      return call.freshness === 'local' ? domainAnswer(context, call.domain) : undefined;
    case 'list':
      return call.freshness === 'local' ? listAnswer(context, call) : undefined;
    case 'acquire':
    case 'renew':
    case 'release':
    case 'withdraw':
    case 'forceRelease':
    case 'transferLeadership':
    case 'changeLimits':
      return undefined;
  }
}

/** One domain with its waiters. */
export function domainAnswer(context: Context, domain: Domain): GetAnswer {
  const waiters = queueOf(context.lease, domain).slice(0, SHOWN_WAITERS).map(waiterView);
  return { type: 'get', ...domainView(context, domain), waiters };
}

/** A page of domains. */
export function listAnswer(context: Context, { prefix, after, pageSize }: ListCall): ListAnswer {
  const names = listNames(context.lease, prefix, after, pageSize + 1);
  const shown = names.slice(0, pageSize);
  return {
    type: 'list',
    domains: shown.map((name) => domainView(context, name)),
    next: names.length > pageSize ? (shown.at(-1) ?? '') : '',
  };
}

/** The state of one domain, name or slot; times left only where this node is the leader that measures them. */
function domainView(context: Context, domain: Domain): DomainView {
  const lease = leaseOf(context.lease, domain);
  const { leadership, time } = context;
  const { nowMs } = time;
  const deadline = lease === undefined || leadership === undefined ? undefined : deadlineOf(leadership.clock, lease);
  return {
    domain,
    lease: lease === undefined ? undefined : leaseView(lease),
    leftMs: Math.max(0, Math.ceil((deadline ?? nowMs) - nowMs)),
    queueLength: queueOf(context.lease, domain).length,
    coolDownLeftMs: coolDownLeftMs(context, domain),
  };
}

function status(context: Context): GetStatusAnswer {
  const { raft, options, genesis } = context;
  const { history } = genesis;
  return {
    type: 'getStatus',
    node: options.self.node,
    leader: leaderOf(raft)?.node,
    role: roleName(raft),
    term: raft.hard.term,
    base: history.base,
    lastRevision: revisionAt(history, lastIndex(raft)),
    durableRevision: revisionAt(history, stableIndex(raft)),
    committedRevision: revisionAt(history, commitIndex(raft)),
    appliedRevision: revisionAt(history, context.applied),
    members: members(context),
    alarms: [...context.alarms.values(), ...holdAlarm(context), ...otherLimits(context)],
    limits: sharedLimits(context.lease.limits),
  };
}

/** How long grants are still held back, as the leader that counts it knows. */
function holdAlarm({ lease, leadership, genesis, time }: Context): readonly string[] {
  if (!lease.holding || leadership?.ready === undefined) return [];
  const left = Math.max(0, Math.ceil(genesis.holdMs - (time.nowMs - leadership.ready.since)));
  return [
    `nothing is granted for ${left} ms more: the history was begun with a hold, because holders of an earlier one may live`,
  ];
}

function otherLimits({ options, lease }: Context): readonly string[] {
  const alarm = limitsAlarm(options.limits, lease.limits);
  return alarm === undefined ? [] : [alarm];
}

function members(context: Context): MemberView[] {
  const { raft, options, genesis } = context;
  const seen = followers(raft);
  const last = lastIndex(raft);
  return genesis.members.map((member) => {
    const peer = seen.find((each) => sameMember(each.member, member));
    const self = sameMember(member, options.self);
    return {
      node: member.node,
      directory: member.directory,
      peerAddress: options.addresses.find((each) => each.node === member.node)?.peerAddress ?? '',
      voter: true,
      reachable: self || (peer?.active ?? false),
      lag: peer === undefined ? 0 : Math.max(0, last - peer.match),
    };
  });
}
