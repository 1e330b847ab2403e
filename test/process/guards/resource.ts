/** What the frame needs of a resource, on both sides; an adapter for each kind. */
import type { FencedLease, Outcome } from '../../../src/guard/types.js';
import type { S3Place } from '../../servers/s3.js';

/** How a guarded operation ended. */
export type Status = Outcome<unknown>['status'];

/** In the test: a resource that has been started, and holds one text, empty at first. */
export interface RunningResource extends AsyncDisposable {
  /** How workers reach it; part of their order, hence JSON. */
  readonly where: Where;
  /** What is committed. */
  read(): Promise<string>;
}

/** By the kind of connection, which {@link connectTo} makes. */
export type Where =
  | { readonly kind: 'server'; readonly url: string }
  /** `package`: whose client the worker uses. */
  | { readonly kind: 'http'; readonly url: string; readonly package: string }
  /** As above. */
  | { readonly kind: 'grpc'; readonly address: string; readonly package: string }
  | { readonly kind: 'redis'; readonly driver: string; readonly port: number }
  | { readonly kind: 's3'; readonly place: S3Place }
  | { readonly kind: 'dynamodb'; readonly url: string };

/** In a worker: its way to the resource, through the guard or with the guard removed. */
export interface Connection {
  /** Begins a tenure; without a guard there is nothing to be done. */
  open(lease: FencedLease): Promise<Status>;
  read(): Promise<string>;
  write(lease: FencedLease, value: string): Promise<Status>;
}
