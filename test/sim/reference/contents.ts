/** What an answer says is what the state was at the revision that it names. */
import type { Answer, Call, EndedView, LeaseState, LeaseView } from '../../../src/base/api.js';
import type { LeaseModel, Live } from './lease-model.js';

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
    const live = model.live.get(call.domain);
    if (answer.domain !== call.domain || !sameView(live, answer.lease)) {
      fail(`says that ${answer.domain} is held by ${answer.lease?.token ?? 'nobody'}, not ${live?.token ?? 'nobody'}`);
    }
  }
  if (answer.type !== 'acquire' || call.type !== 'acquire') return;
  const { outcome } = answer;
  if (answer.requestId !== call.requestId) fail(`answers request ${call.requestId} as ${answer.requestId}`);
  const known = model.ids.get(call.requestId);
  if (outcome.type === 'granted') {
    const { lease } = outcome;
    if (known === undefined || !('version' in known) || !sameView(known, lease)) {
      fail(`says that ${call.requestId} holds ${lease.domain} ${lease.token}, which it does not`);
    }
  } else if (outcome.type === 'notGranted') {
    const live = model.live.get(call.domain);
    if (outcome.reason === 'held' ? !sameView(live, outcome.current) : !model.holding) {
      fail(`says that ${call.domain} is held by ${outcome.current?.token ?? 'nobody'}, not ${live?.token ?? 'nobody'}`);
    }
  } else if (known !== undefined) {
    if ('version' in known) fail(`says that ${call.requestId} is over, which holds ${known.domain} ${known.token}`);
    else if (!sameEnd(model.viewOf(known), outcome.ended)) fail(`says that ${call.requestId} ended otherwise`);
  }
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
