/**
 * The leases of one domain as a model for the search of checker.ts. Grants and ends are its internal steps: each may come
 * from the moment at which a client's call, or the clock, can have brought it about; so calls of unknown outcome are
 * steps that may be taken late or never. An answered call is a look at the state at some moment between its invocation
 * and its return: an Acquire that is told `granted 7` needs a moment at which 7 lives.
 *
 * Expiry (contract 3): every answer that confirms a lease comes before its end, or it would not say "live". So no expiry
 * comes before the latest safe deadline that any answer in the whole history gave.
 */
import type { RequestId } from '../../../src/base/ids.js';
import type { Model, Timed } from './checker.js';
import type { Span } from './spans.js';
import type { Tenure } from './tenures.js';

/** A span with the times of its operation. */
export interface Look extends Span, Timed {
  readonly returnedAt: number;
}

/** The state of a domain. */
export interface DomainState {
  /** See spans.ts. */
  readonly position: number;
  /** What became of the requests of which it is open, the last first. */
  readonly fates: Fates | undefined;
}

interface Fates {
  readonly id: RequestId;
  /** The tenure that it was granted; undefined: withdrawn before any grant. */
  readonly tenure: number | undefined;
  readonly before: Fates | undefined;
}

/** The model of the domain with these tenures. */
export function leaseModel(tenures: readonly Tenure[]): Model<DomainState, Look> {
  return {
    initial: { position: 0, fates: undefined },
    apply(state, look) {
      const { position } = state;
      if (position < look.low || position > look.high || (look.free && position % 2 === 1)) return undefined;
      return look.open === undefined ? state : decided(state, look, look.open.id);
    },
    internal(state, latest) {
      const tenure = tenures[state.position >> 1];
      if (tenure === undefined) return [];
      return state.position % 2 === 0 ? grants(state, tenure, latest) : ends(state, tenure, latest);
    },
    key({ position, fates }) {
      return `${position} ${fatesKey(fates)}`;
    },
  };
}

/** A look that concerns a request whose fate is open: a withdrawal decides it. */
function decided(state: DomainState, { told }: Look, id: RequestId): DomainState | undefined {
  const fate = fateOf(state.fates, id);
  if (told.notGranted !== undefined) return fate === undefined ? state : undefined;
  if (fate === undefined) {
    return { position: state.position, fates: { id, tenure: undefined, before: state.fates } };
  }
  return fate.tenure === undefined || state.position >= 2 * fate.tenure + 2 ? state : undefined;
}

function grants({ position, fates }: DomainState, { token, requests }: Tenure, latest: number): DomainState[] {
  const states: DomainState[] = [];
  for (const request of requests) {
    if (request.grantFrom > latest) continue;
    if (request.token === token) states.push({ position: position + 1, fates });
    else if (fateOf(fates, request.id) === undefined) {
      states.push({ position: position + 1, fates: { id: request.id, tenure: position >> 1, before: fates } });
    }
  }
  return states;
}

function ends({ position, fates }: DomainState, tenure: Tenure, latest: number): DomainState[] {
  const withdrawn =
    tenure.withdrawable &&
    tenure.requests.some(
      ({ id, token, withdrawFrom }) =>
        withdrawFrom <= latest && (token === tenure.token || fateOf(fates, id)?.tenure === position >> 1),
    );
  return withdrawn || tenure.endFrom <= latest ? [{ position: position + 1, fates }] : [];
}

function fateOf(fates: Fates | undefined, id: RequestId): Fates | undefined {
  for (let fate = fates; fate !== undefined; fate = fate.before) if (fate.id === id) return fate;
  return undefined;
}

/** In the order of ids: which came first changes nothing that follows. */
function fatesKey(fates: Fates | undefined): string {
  if (fates === undefined) return '';
  const texts: string[] = [];
  for (let fate: Fates | undefined = fates; fate !== undefined; fate = fate.before) {
    texts.push(`${fate.id}=${fate.tenure ?? 'none'}`);
  }
  return texts.sort().join(' ');
}
