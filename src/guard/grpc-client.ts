/** The client's side: calls under a lease, and their ends as outcomes. */
import { InterceptingCall } from '@grpc/grpc-js';
import type { Interceptor, Metadata, ServiceError, StatusObject } from '@grpc/grpc-js';
import { EARLIER_KEY, fencingMetadata, OUTCOME_KEY, setFencing } from './grpc-metadata.js';
import { outcomeFrom } from './grpc-status.js';
import type { FencedLease, Outcome } from './types.js';

/** An interceptor that presents these leases with every call, of any kind. Throws as {@link fencingMetadata} does. */
export function fencingInterceptor(leases: FencedLease | readonly FencedLease[]): Interceptor {
  fencingMetadata(leases);
  return (options, nextCall) =>
    new InterceptingCall(nextCall(options), {
      start(metadata, listener, next) {
        // The caller may use the same metadata for calls under other leases, or under none.
        const own = metadata.clone();
        setFencing(own, leases);
        next(own, listener);
      },
    });
}

/** What a unary method of a generated client returns. */
export interface UnaryCall {
  /** Emits the status of the call, when it has ended. */
  on(event: 'status', listener: (status: StatusObject) => void): unknown;
}

/**
 * One unary call under these leases: `invoke` makes it, with the metadata and the callback that it is given. It is sent once.
 * Resolves to the outcome that the service's guard gave. Rejects with the call's own error for any other end (what is
 * not said to be refused may have been carried out), and with an Error when the call succeeded without a guard.
 * Throws as {@link fencingMetadata} does.
 */
export function fencedCall<T>(
  leases: FencedLease | readonly FencedLease[],
  invoke: (metadata: Metadata, callback: (error: ServiceError | null, value?: T) => void) => UnaryCall,
): Promise<Outcome<T>> {
  const metadata = fencingMetadata(leases);
  return new Promise((resolve, reject) => {
    let ended: { readonly error: ServiceError | null; readonly value: T | undefined } | undefined;
    const call = invoke(metadata, (error, value) => {
      ended = { error, value };
    });
    // Comes last, and has the trailers of a success too.
    call.on('status', ({ metadata: trailers }) => {
      if (ended?.error != null) {
        const refused = outcomeFrom(ended.error);
        if (refused === undefined) reject(ended.error);
        else resolve(refused);
        return;
      }
      if (trailers.get(OUTCOME_KEY)[0] !== 'applied') {
        const what = `without ${OUTCOME_KEY}: the service does not say that a guard applied it`;
        reject(new Error(`the call succeeded ${what}. It was carried out unguarded, or it needs no lease`));
        return;
      }
      const earlier = trailers.get(EARLIER_KEY)[0];
      resolve({ status: 'applied', value: ended?.value as T, earlierIncarnation: earlier?.toString() });
    });
  });
}
