import { Metadata } from '@grpc/grpc-js';
import type { Failure } from '../base/errors.js';
import { failureToStatus } from '../wire/public-error.js';

/** What grpc-js ends a call with. */
export interface CallEnd {
  readonly code: number;
  readonly details: string;
  readonly metadata: Metadata;
}

/** A failure as the end of a call. */
export function endOf(fault: Failure): CallEnd {
  const { code, message, trailers } = failureToStatus(fault);
  const metadata = new Metadata();
  for (const [key, value] of trailers) metadata.set(key, typeof value === 'string' ? value : Buffer.from(value));
  return { code, details: message, metadata };
}
