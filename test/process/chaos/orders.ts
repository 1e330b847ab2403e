/** What the processes of a chaos run are started with: JSON in their first argument. */

/** For `worker.ts`. */
export interface WorkerOrder {
  readonly name: string;
  readonly seed: number;
  /** Its own way to each node. */
  readonly endpoints: readonly string[];
  /** URL of the resource. */
  readonly resource: string;
  /** Where it writes its events. */
  readonly notebook: string;
  /** The package whose client library it uses. */
  readonly package: string;
  /** How many loops of each kind. */
  readonly holders: number;
  readonly callers: number;
}

/** For `resource.ts`. */
export interface ResourceOrder {
  readonly port: number;
  readonly directory: string;
  readonly notebook: string;
  /** The package whose guard it uses. */
  readonly package: string;
}

/** Domains change so often, in milliseconds: each has a short history that can be judged as a whole. */
export const EPOCH_MS = 15_000;

/** Every counting name has so many slots. */
export const POOL_SLOTS = 3;

/** The number of the epoch at a moment. */
export function epochAt(at: number): number {
  return Math.floor(at / EPOCH_MS);
}

/** The order in the first argument. */
export function orderOf(): unknown {
  return JSON.parse(process.argv[2] ?? '{}');
}
