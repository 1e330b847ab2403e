/** What an answer says is what the state was at the revision that it names. */
import { SHOWN_WAITERS } from '../../../src/base/api.js';
import type {
  AcquireAnswer,
  AcquireCall,
  Answer,
  Call,
  DomainView,
  EndedView,
  LeaseState,
  LeaseView,
  ListAnswer,
  ListCall,
  NotGrantedReason,
} from '../../../src/base/api.js';
import type { LeaseModel } from './lease-model.js';
import type { Live } from './lease-state.js';
import { isSame } from './limits.js';

/** Checks an answer against the state at its revision. What an entry decided is checked with its outcome elsewhere. */
export function checkContents(model: LeaseModel, call: Call, answer: Answer, fail: (text: string) => void): void {
  if (answer.type !== call.type) {
    fail(`answers a ${call.type} by a ${answer.type}`);
    return;
  }
  if (answer.type === 'verify' && call.type === 'verify') checkState(model, call.lease, answer.outcome, fail);
  if (answer.type === 'renew' && call.type === 'renew') {
    if (answer.results.length !== call.leases.length) fail(`answers ${answer.results.length} of ${call.leases.length}`);
    for (const [at, ref] of call.leases.entries()) {
      const result = answer.results[at];
      if (result !== undefined) checkState(model, ref, result, fail);
    }
  }
  if (answer.type === 'get' && call.type === 'get') {
    if (answer.domain !== call.domain) fail(`shows ${answer.domain}, not ${call.domain}`);
    checkDomain(model, answer, fail);
    const waiters = model.queueOf(call.domain).slice(0, SHOWN_WAITERS);
    const same = waiters.every(({ holder, queuedAtUnixMs }, at) => {
      const shown = answer.waiters[at];
      return shown?.holder === holder && shown.queuedAtUnixMs === queuedAtUnixMs;
    });
    if (answer.waiters.length !== waiters.length || !same) fail(`shows others than those who wait for ${call.domain}`);
  }
  if (answer.type === 'getStatus' && (answer.limits === undefined || !isSame(model.limits, answer.limits))) {
    fail('shows other limits than those in force');
  }
  if (answer.type === 'list' && call.type === 'list') checkList(model, call, answer, fail);
  if (answer.type === 'acquire' && call.type === 'acquire') checkAcquired(model, call, answer, fail);
}

function checkAcquired(
  model: LeaseModel,
  { domain, requestId, slots }: AcquireCall,
  { requestId: answered, outcome }: AcquireAnswer,
  fail: (text: string) => void,
): void {
  if (answered !== requestId) fail(`answers request ${requestId} as ${answered}`);
  const known = model.ids.get(requestId);
  const inTheWay = model.inTheWay(domain);
  switch (outcome.type) {
    case 'granted': {
      const { lease } = outcome;
      if (known === undefined || !('version' in known) || !sameView(known, lease)) {
        fail(`says that ${requestId} holds ${lease.domain} ${lease.token}, which it does not`);
      }
      return;
    }
    case 'queued': {
      const position = model.queueOf(domain).findIndex((waiter) => waiter === known) + 1;
      if (outcome.position !== position || position === 0) {
        fail(`says that ${requestId} is number ${outcome.position} in the queue, not ${position}`);
      }
      if (!sameView(inTheWay, outcome.current)) fail(`says that ${outcome.current?.token ?? 'nobody'} holds ${domain}`);
      return;
    }
    case 'notGranted': {
      const { reason, current, queueLength, coolDownLeftMs } = outcome;
      if (!sameView(inTheWay, current) || (reason === 'held' && !model.isTaken(domain))) {
        fail(`says that ${domain} is held by ${current?.token ?? 'nobody'}, not ${inTheWay?.token ?? 'nobody'}`);
      }
      if (queueLength !== model.queueOf(domain).length) fail(`says that ${queueLength} wait for ${domain}`);
      if (coolDownLeftMs > 0 && !model.coolsDown(domain)) fail(`says that ${domain} cools down`);
      const holds: Readonly<Record<NotGrantedReason, boolean>> = {
        held: true,
        wait_over: known !== undefined && 'finishedAt' in known && known.reason === 'left_queue',
        queue_full: model.queueOf(domain).length >= model.limits.queue,
        cool_down: inTheWay === undefined && model.coolsDown(domain),
        slots_differ: model.isOtherwise(domain, slots),
        recovering: model.holding,
      };
      if (!holds[reason]) fail(`answers ${reason} to the acquire of ${domain}, which is not so`);
      return;
    }
    case 'ended':
      if (known === undefined) return;
      if (!('finishedAt' in known)) fail(`says that ${requestId} is over, which is not`);
      else if (!sameEnd(model.viewOf(known), outcome.ended)) fail(`says that ${requestId} ended otherwise`);
  }
}

/** One domain, name or slot as a Get or a List shows it. */
function checkDomain(model: LeaseModel, view: DomainView, fail: (text: string) => void): void {
  const { domain, lease, queueLength, coolDownLeftMs } = view;
  const live = model.live.get(domain);
  if (!sameView(live, lease)) {
    fail(`says that ${domain} is held by ${lease?.token ?? 'nobody'}, not ${live?.token ?? 'nobody'}`);
  }
  if (queueLength !== model.queueOf(domain).length) fail(`says that ${queueLength} wait for ${domain}`);
  if (coolDownLeftMs > 0 && !model.coolsDown(domain)) fail(`says that ${domain} cools down`);
}

/** A page: what is held, closed or waited for, in byte order, and where the next one begins. */
function checkList(
  model: LeaseModel,
  { prefix, after, pageSize }: ListCall,
  { domains, next }: ListAnswer,
  fail: (text: string) => void,
): void {
  const names = new Set([...model.live.keys(), ...model.closed.keys(), ...model.waiting.map(({ domain }) => domain)]);
  const wanted = [...names].filter((name) => name.startsWith(prefix) && name > after).sort(byteOrder);
  const page = wanted.slice(0, pageSize);
  const shown = domains.map(({ domain }) => domain);
  if (shown.join(' ') !== page.join(' ')) fail(`lists ${shown.join(' ')}, not ${page.join(' ')}`);
  for (const view of domains) checkDomain(model, view, fail);
  const last = wanted.length > pageSize ? page.at(-1) : '';
  if (next !== last) fail(`says that the next page begins behind '${next}', not '${last ?? ''}'`);
}

/** Names are ASCII. */
function byteOrder(left: string, right: string): number {
  return left < right ? -1 : Number(left > right);
}

function checkState(
  model: LeaseModel,
  ref: { readonly domain: string; readonly token: number },
  state: LeaseState,
  fail: (text: string) => void,
): void {
  const live = model.live.get(ref.domain);
  const lives = live?.token === ref.token;
  if (state.type === 'live') {
    if (!lives || state.ttlMs !== live.ttlMs) fail(`says that ${ref.domain} ${ref.token} lives`);
  } else if (lives || !sameEnd(model.endOf(ref), state.ended)) {
    fail(`says that ${ref.domain} ${ref.token} ended: ${state.ended.reason}`);
  }
}

/** True when both tell of one end. */
export function sameEnd(own: EndedView, other: EndedView): boolean {
  return (
    own.reason === other.reason &&
    own.by === other.by &&
    own.note === other.note &&
    own.currentToken === other.currentToken &&
    own.lease?.domain === other.lease?.domain &&
    own.lease?.token === other.lease?.token
  );
}

function sameView(live: Live | undefined, view: LeaseView | undefined): boolean {
  if (live === undefined || view === undefined) return live === view;
  return (
    live.domain === view.domain &&
    live.token === view.token &&
    live.holder === view.holder &&
    live.ttlMs === view.ttlMs &&
    live.grantedAtUnixMs === view.grantedAtUnixMs &&
    live.metadata.length === view.metadata.length
  );
}
