import type { Outcome } from '../../base/errors.js';

/** `NO_DRIVER`: see the message. `NO_CONNECTION`: it cannot be reached or opened. `NOT_MIGRATED`: it has no fences. `REFUSED`: it said no. */
export type ResourceCode = 'NO_DRIVER' | 'NO_CONNECTION' | 'NOT_MIGRATED' | 'REFUSED';

/** Why a resource did not do what was asked; the message ends with what to do about it. */
export class ResourceError extends Error {
  readonly code: ResourceCode;
  /** Whether anything may have been changed. */
  readonly outcome: Outcome;

  constructor(
    code: ResourceCode,
    message: string,
    more: { readonly outcome?: Outcome; readonly cause?: unknown } = {},
  ) {
    super(message, more.cause === undefined ? undefined : { cause: more.cause });
    this.name = 'ResourceError';
    this.code = code;
    this.outcome = more.outcome ?? 'not-done';
  }
}

/** The text of whatever was thrown; some errors of the network have it only in their parts. */
export function textOf(error: unknown): string {
  if (error instanceof AggregateError && error.message === '') return error.errors.map(textOf).join('; ');
  return error instanceof Error ? error.message : String(error);
}

/** The `code` of an error of a driver or of the system. */
export function codeOf(error: unknown): string {
  const { code } = typeof error === 'object' && error !== null ? (error as { readonly code?: unknown }) : {};
  return typeof code === 'string' ? code : '';
}
