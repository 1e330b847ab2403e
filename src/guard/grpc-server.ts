/** The service's side: what a call presents goes to a guard, and the guard's outcome to the client. */
import { Metadata } from '@grpc/grpc-js';
import { EARLIER_KEY, fieldsOf, OUTCOME_KEY } from './grpc-metadata.js';
import type { IncomingMetadata } from './grpc-metadata.js';
import { refusalError } from './grpc-status.js';
import { judge } from './presented.js';
import type { FenceReader } from './presented.js';
import type { FencedLease, Outcome } from './types.js';

/** What is needed of a call: those of grpc-js fit, of whatever kind. */
export interface GrpcCall {
  /** What the client sent. */
  readonly metadata: IncomingMetadata;
}

/** For {@link grpcFencing}. */
export interface GrpcFencingOptions<C> {
  /**
   * The domains that this call needs a lease of. They follow from what it is about, never from what it presents: a lease of
   * another domain opens nothing here. Undefined, or none, when it needs no lease; its metadata are not looked at then.
   */
  readonly domains: (call: C) => string | readonly string[] | undefined;
  /**
   * The guard that the handler uses. When it is given, a call whose refusal is certain already is refused before the handler
   * runs. That saves work and protects nothing: the guard has to judge again, in one step with the change.
   */
  readonly guard?: FenceReader;
}

/** How a unary handler of grpc-js ends its call. */
export type UnaryCallback<T> = (error: Error | null, value?: T, trailers?: Metadata) => void;

/** For handlers of one kind of call. */
export interface GrpcFencing<C> {
  /**
   * A unary handler for grpc-js: `work` hands the leases to a guard's `run`, and the outcome decides how the call ends. What it
   * throws ends the call as it would without a guard.
   */
  unary<T>(
    work: (call: C, leases: readonly FencedLease[]) => Promise<Outcome<T>> | Outcome<T>,
  ): (call: C, callback: UnaryCallback<T>) => void;
  /**
   * For streams: the leases that the call presents, at its start. Rejects with a `GrpcRefusalError`, which the handler ends the
   * call with. What comes later is for the guard: each message that changes something is a `run` of its own.
   */
  admit(call: C): Promise<readonly FencedLease[]>;
  /** For streams: the value of what was applied. Throws a `GrpcRefusalError` for what was not. */
  valueOf<T>(outcome: Outcome<T>, leases: readonly FencedLease[]): T;
}

/** Fences for handlers of grpc-js. */
export function grpcFencing<C extends GrpcCall = GrpcCall>(options: GrpcFencingOptions<C>): GrpcFencing<C> {
  const { domains, guard } = options;
  const admit = async (call: C): Promise<readonly FencedLease[]> => {
    const named = domains(call) ?? [];
    const needed = typeof named === 'string' ? [named] : named;
    if (needed.length === 0) return [];
    const { leases, refusal } = await judge(fieldsOf(call.metadata), needed, guard);
    if (refusal !== undefined) throw refusalError(refusal, leases);
    return leases;
  };
  return {
    admit,
    valueOf<T>(outcome: Outcome<T>, leases: readonly FencedLease[]): T {
      if (outcome.status !== 'applied') throw refusalError(outcome, leases);
      return outcome.value;
    },
    unary<T>(work: (call: C, leases: readonly FencedLease[]) => Promise<Outcome<T>> | Outcome<T>) {
      const serve = async (call: C): Promise<[T, Metadata]> => {
        const leases = await admit(call);
        const outcome = await work(call, leases);
        if (outcome.status !== 'applied') throw refusalError(outcome, leases);
        const trailers = new Metadata();
        trailers.set(OUTCOME_KEY, 'applied');
        if (outcome.earlierIncarnation !== undefined)
          trailers.set(EARLIER_KEY, Buffer.from(outcome.earlierIncarnation));
        return [outcome.value, trailers];
      };
      return (call: C, callback: UnaryCallback<T>): void => {
        serve(call).then(
          ([value, trailers]) => {
            callback(null, value, trailers);
          },
          (error: unknown) => {
            callback(error instanceof Error ? error : new Error(String(error)));
          },
        );
      };
    },
  };
}
