/** What is the same for every database whose guard keeps the fence in the row that it guards. */
import { admit, issuerOf } from './fence.js';
import type { Admitted } from './fence.js';
import type { FencedLease, Rejected, Stale } from './types.js';

/** The table of a guard over rows. */
export interface RowTable {
  /** Its name, behind that of its schema or database and a dot where it has to be. */
  readonly table: string;
  /** The column of its primary key. */
  readonly key: string;
}

/** What a row says of its fence. */
export interface RowFence {
  /** `fence_token` as text; `0` while nobody has written under a lease. */
  readonly token: string | null;
  /** `fence_issuer`. */
  readonly issuer: string | null;
}

/**
 * May this lease change the row? As `admit`, but for the incarnation: a row stores none, so none is ever another one.
 * Throws an Error when what is stored is no fence. `row` names it, for messages.
 */
export function admitToRow(row: string, { token, issuer }: RowFence, lease: FencedLease): Admitted | Stale | Rejected {
  if (token === null || token.startsWith('-')) {
    throw new Error(
      `fence_token of ${row} is ${String(token)}: no fence. Nothing was changed. Find out who wrote there, then set it by hand ` +
        'to the token of the lease that was granted last',
    );
  }
  if (token === '0') return admit(undefined, lease);
  const { cluster, incarnation } = lease;
  const verdict = admit({ token: BigInt(token), issuer: issuer ?? issuerOf(cluster), incarnation }, lease);
  if (verdict.status !== 'rejected') return verdict;
  // No function of a guard changes it.
  return {
    ...verdict,
    message: `${verdict.message} The fence is that of ${row}: set its fence_token and fence_issuer by hand.`,
  };
}
