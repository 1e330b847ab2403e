/** Runs a node until it ends; what a process does with signals and exit codes. */
import { readFileSync } from 'node:fs';
import { logVerbosity, setLogVerbosity } from '@grpc/grpc-js';
import { DirectoryRefused } from '../storage/refused.js';
import type { NodeConfig } from './config.js';
import { createLog } from './log.js';
import { Node } from './node.js';
import type { Ending } from './node.js';

/** Exit codes of `fencepost start`. */
export const EXIT = {
  stopped: 0,
  /** The data directory or the other members refuse this node. */
  refused: 1,
  /** Configuration, or a port that is taken. */
  usage: 2,
  /** A defect of Fencepost: an assertion failed. */
  defect: 70,
  /** A write to the disk failed. */
  disk: 74,
} as const;

/**
 * Runs a node to its end and returns the exit code, {@link EXIT}. After a failed write or assertion the process ends
 * here and at once: nothing of it may be answered any more.
 *
 * @throws `UsageFaults` when an address cannot be listened on.
 */
export async function runNode(config: NodeConfig): Promise<number> {
  // What it would write to standard error beside our log is reported to us as well, by its callbacks.
  setLogVerbosity(logVerbosity.NONE);
  const log = createLog(config.logLevel, { node: config.nodeId });
  let finish: (ending: Ending) => void = () => undefined;
  const ended = new Promise<Ending>((resolve) => {
    finish = resolve;
  });
  const end = (ending: Ending): void => {
    if (ending.type === 'disk' || ending.type === 'defect') {
      log.error(
        ending.type === 'disk'
          ? 'a write to the disk failed; the process ends'
          : 'an assertion failed; the process ends',
        {
          error: ending.error.message,
          stack: ending.error.stack ?? '',
        },
      );
      log.flushNow();
      process.exit(EXIT[ending.type]);
    }
    finish(ending);
  };
  const node = new Node(config, ownVersion(), log, end);
  log.info('starting', {
    ...config,
    members: config.members.map(({ nodeId, peerAddress }) => `${nodeId}=${peerAddress}`).join(','),
    prefixQuotas: config.prefixQuotas.map((each) => `${each.prefix}=${each.leases}/${each.waiters}`).join(','),
  });
  const stop = (): void => {
    node.stop();
  };
  const defect = (error: unknown): void => {
    end({ type: 'defect', error: error instanceof Error ? error : new Error(String(error)) });
  };
  process.once('SIGTERM', stop);
  process.once('SIGINT', stop);
  // Thrown where no caller could catch it: inside a socket's callback, say.
  process.on('uncaughtException', defect);
  process.on('unhandledRejection', defect);
  try {
    await node.start();
    const ending = await ended;
    if (ending.type === 'refused') log.error(ending.message);
    else log.info('stopped');
    await log.flush();
    // Open sockets of a refused node must not keep the process.
    if (ending.type === 'refused') process.exit(EXIT.refused);
    return EXIT.stopped;
  } catch (error) {
    if (!(error instanceof DirectoryRefused)) throw error;
    log.error(error.message);
    process.exit(EXIT.refused);
  } finally {
    process.off('SIGTERM', stop);
    process.off('SIGINT', stop);
    process.off('uncaughtException', defect);
    process.off('unhandledRejection', defect);
  }
}

function ownVersion(): string {
  const manifest = JSON.parse(readFileSync(new URL('../../package.json', import.meta.url), 'utf8')) as {
    readonly version: string;
  };
  return manifest.version;
}
