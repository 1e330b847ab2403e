/** A holder that hangs must not keep its successor out: the work of one guarded operation has a time limit. */

const DEFAULT_WORK_MS = 10_000;
const MAX_WORK_MS = 3_600_000;

/** Of every guard that runs the caller's work in this process. */
export interface WorkTimeOptions {
  /**
   * How long the work of one `run` may take, in milliseconds; 1 to 3 600 000. Default: 10 000. Work that is not done by
   * then is given up, so that a holder that hangs does not keep its successor out.
   */
  readonly workTimeoutMs?: number;
}

/** The limit that the options give. Throws a TypeError when it is none. */
export function workTimeoutOf({ workTimeoutMs = DEFAULT_WORK_MS }: WorkTimeOptions): number {
  if (!Number.isInteger(workTimeoutMs) || workTimeoutMs < 1 || workTimeoutMs > MAX_WORK_MS) {
    throw new TypeError(`workTimeoutMs must be an integer from 1 to ${MAX_WORK_MS}, not ${workTimeoutMs}`);
  }
  return workTimeoutMs;
}

/** Waits for `work`, no longer than the limit: then `giveUp` stops it, and says what became of it. */
export async function inTime<T>(work: Promise<T>, limitMs: number, giveUp: () => Error): Promise<T> {
  let timer: ReturnType<typeof setTimeout> | undefined;
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => {
      reject(giveUp());
    }, limitMs);
  });
  try {
    return await Promise.race([work, late]);
  } finally {
    clearTimeout(timer);
  }
}
