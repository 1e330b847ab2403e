/** The log of a node: JSON, one line an event, on standard error. Nothing else of a node writes there. */
import { write, writeSync } from 'node:fs';
import { type DestinationStream, destination, pino } from 'pino';
import { AuditQueue } from './audit-queue.js';

/** What a line may carry besides its message: numbers and texts, so that it can be searched. */
export type LogFields = Readonly<Record<string, string | number | boolean>>;

/** Least level that is written; `audit` lines are always written. */
export type LogLevel = 'info' | 'warn' | 'error';

/**
 * Where a node says what happens to it. Synchronous but for audit lines: when a call returns the line has been written,
 * so the last line before an end by failure is there.
 */
export interface Log {
  /** The normal course of things that an operator wants to see once. */
  info(message: string, fields?: LogFields): void;
  /** Something is wrong and Fencepost goes on. */
  warn(message: string, fields?: LogFields): void;
  /** Something is wrong and a person has to act. */
  error(message: string, fields?: LogFields): void;
  /**
   * Who lost what, and who did it: forced releases, losses, forming. Written soon after the call, see `audit-queue.ts`.
   * A `detail` (grants, releases) is dropped before a loss is, when the reader does not keep up.
   */
  audit(message: string, fields?: LogFields, detail?: boolean): void;
  /** Resolves when all audit lines are written, after {@link FLUSH_MS} at the latest. */
  flush(): Promise<void>;
  /** Writes what audit lines there are, before the process ends by a failure. */
  flushNow(): void;
}

/** A reader that stands still does not keep a node from stopping, in milliseconds. */
const FLUSH_MS = 1_000;
/** Above `error`, so that no level hides it. */
const AUDIT = 70;
const STANDARD_ERROR = 2;
/** Between two attempts to write to a pipe that is full, in milliseconds. */
const FULL_PIPE_MS = 20;

interface AuditLine {
  readonly unixMs: number;
  readonly message: string;
  readonly fields: LogFields;
}

/** A log whose every line carries `base` (the node's name). `to` replaces standard error in tests. */
export function createLog(level: LogLevel, base: LogFields, to?: DestinationStream): Log {
  const logger = createLogger(level, base, Date.now, to ?? destination({ dest: STANDARD_ERROR, sync: true }));
  let line: AuditLine = { unixMs: 0, message: '', fields: {} };
  let text = '';
  const formatter = createLogger(level, base, () => line.unixMs, {
    write: (formatted) => {
      text = formatted;
    },
  });
  const writeTo = (chunk: string): void => {
    if (to === undefined) writeSync(STANDARD_ERROR, chunk);
    else to.write(chunk);
  };
  const queue = new AuditQueue<AuditLine>({
    format: (next) => {
      line = next;
      formatter.audit(next.fields, next.message);
      return text;
    },
    dropped: (lines) => ({
      unixMs: Date.now(),
      message: 'audit lines were dropped, because they were not read as fast as they came',
      fields: { lines },
    }),
    write: (chunk, done) => {
      if (to === undefined) writeWhole(Buffer.from(chunk), done);
      else {
        to.write(chunk);
        setImmediate(done, undefined);
      }
    },
    soon: setImmediate,
  });
  return {
    info: (message, fields = {}) => {
      logger.info(fields, message);
    },
    warn: (message, fields = {}) => {
      logger.warn(fields, message);
    },
    error: (message, fields = {}) => {
      logger.error(fields, message);
    },
    audit: (message, fields = {}, detail = false) => {
      queue.add({ unixMs: Date.now(), message, fields }, detail);
    },
    flush: async () => {
      let timer: NodeJS.Timeout | undefined;
      const enough = new Promise<void>((resolve) => {
        timer = setTimeout(resolve, FLUSH_MS);
      });
      await Promise.race([queue.idle(), enough]);
      clearTimeout(timer);
    },
    flushNow: () => {
      const rest = queue.rest();
      try {
        if (rest !== '') writeTo(rest);
      } catch {
        // Nobody can be told where this is what failed.
      }
    },
  };
}

function createLogger(level: LogLevel, base: LogFields, unixMs: () => number, to: DestinationStream) {
  return pino<'audit'>(
    {
      level,
      base,
      customLevels: { audit: AUDIT },
      messageKey: 'message',
      timestamp: () => `,"time":"${new Date(unixMs()).toISOString()}"`,
      formatters: { level: (label) => ({ level: label }) },
    },
    to,
  );
}

/** Writes all of `bytes` in another thread. A pipe that is full and does not wait (EAGAIN) is asked again. */
function writeWhole(bytes: Buffer, done: (error: Error | undefined) => void): void {
  write(STANDARD_ERROR, bytes, (error, written) => {
    if (error?.code === 'EAGAIN') setTimeout(writeWhole, FULL_PIPE_MS, bytes, done);
    else if (error !== null) done(error);
    else if (written < bytes.length) writeWhole(bytes.subarray(written), done);
    else done(undefined);
  });
}
