/** The log of a node: JSON, one line an event, on standard error. Nothing else of a node writes there. */
import { type DestinationStream, destination, pino } from 'pino';

/** What a line may carry besides its message: numbers and texts, so that it can be searched. */
export type LogFields = Readonly<Record<string, string | number | boolean>>;

/** Least level that is written; `audit` lines are always written. */
export type LogLevel = 'info' | 'warn' | 'error';

/**
 * Where a node says what happens to it. Synchronous: when a call returns the line has been written, so the last line
 * before an end by failure is there.
 */
export interface Log {
  /** The normal course of things that an operator wants to see once. */
  info(message: string, fields?: LogFields): void;
  /** Something is wrong and Fencepost goes on. */
  warn(message: string, fields?: LogFields): void;
  /** Something is wrong and a person has to act. */
  error(message: string, fields?: LogFields): void;
  /** Who lost what, and who did it: forced releases, losses, forming. */
  audit(message: string, fields?: LogFields): void;
}

/** Above `error`, so that no level hides it. */
const AUDIT = 70;

/** A log whose every line carries `base` (the node's name). `to` replaces standard error in tests. */
export function createLog(level: LogLevel, base: LogFields, to?: DestinationStream): Log {
  const logger = pino(
    {
      level,
      base,
      customLevels: { audit: AUDIT },
      messageKey: 'message',
      timestamp: () => `,"time":"${new Date().toISOString()}"`,
      formatters: { level: (label) => ({ level: label }) },
    },
    to ?? destination({ dest: 2, sync: true }),
  );
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
    audit: (message, fields = {}) => {
      logger.audit(fields, message);
    },
  };
}
