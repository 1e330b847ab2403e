import { constants } from 'node:os';
import { DEFAULT_TTL_MS, MAX_TTL_MS } from '../../base/limits.js';
import type { Client } from '../../client/client.js';
import { FencepostError, NotGrantedError } from '../../client/errors.js';
import { connect } from '../../client/index.js';
import type { Lease } from '../../client/lease.js';
import { ACQUIRE_OPTIONS, type Asked, readAsked } from '../acquire-options.js';
import type { CommandSpec } from '../command.js';
import { CLUSTER_OPTIONS, JSON_OPTION, readEndpoints } from '../endpoints.js';
import { printFailure } from '../failure.js';
import type { Input } from '../input.js';
import { EXIT, type Io } from '../io.js';
import { type Outcome, supervise } from '../supervise.js';
import { NOT_GRANTED } from '../views.js';

/** How `run` ends when the command's own exit code does not say it. The usual ones of `env`, `timeout` and shells. */
export const RUN_EXIT = {
  /** The lease was not granted. */
  notGranted: 123,
  /** The lease was lost, or about to be, before the command had ended. */
  lost: 124,
  /** The cluster did not answer, or refused with an error. */
  failed: 125,
  notExecutable: 126,
  notFound: 127,
  /** Plus the signal's number. */
  signalled: 128,
} as const;

/** The part of the TTL that a command gets to stop when nobody says. */
const DEFAULT_STOP = 1 / 5;
/** The greatest part: a renewal is sent after a third of the TTL and must have time to be repeated. */
const MAX_STOP = 1 / 3;

const FORWARDED = ['SIGINT', 'SIGTERM', 'SIGHUP', 'SIGQUIT'] as const;

/** `fencepost run <domain> -- <command> [argument…]`. */
export const spec: CommandSpec = {
  operands: '<domain> -- <command> [argument…]',
  options: [
    {
      flag: 'ttl-ms',
      value: 'MS',
      about: `how long the lease outlives its last renewal (default ${DEFAULT_TTL_MS}); it is renewed until the command ends`,
    },
    ...ACQUIRE_OPTIONS,
    { flag: 'signal', value: 'NAME', about: 'what the command gets when the lease is lost (default SIGTERM)' },
    {
      flag: 'kill-after-ms',
      value: 'MS',
      about: 'from that signal to SIGKILL; at most a third of the TTL (default: a fifth of it)',
    },
    ...CLUSTER_OPTIONS.filter((option) => option !== JSON_OPTION),
  ],
  notes: `The command finds the lease in FENCING_DOMAIN (with --slots the name of its slot), FENCING_TOKEN, FENCING_CLUSTER and
FENCING_INCARNATION, and gives the token to every resource that it changes. Signals (${FORWARDED.join(', ')})
go to the command and all that it started; the lease is released when all of that is gone.

When no renewal is confirmed, the signal goes out --kill-after-ms before the lease may not be acted under any more, so
that SIGKILL is in time. When an operator ended the lease, or this process stood still, it goes out when that is noticed.
SIGKILL of this process leaves the command running: only a guard at the resource stops it then.`,
  exitCodes: `Exit codes: the command's own; ${RUN_EXIT.signalled}+N when signal N ended it, or this process while it waited for the lease;
${RUN_EXIT.notGranted} not granted; ${RUN_EXIT.lost} the lease was lost before the command had ended; ${RUN_EXIT.failed} the cluster did not answer or
refused; ${RUN_EXIT.notExecutable} the command cannot be executed; ${RUN_EXIT.notFound} it was not found; ${EXIT.usage} wrong usage, nothing was run.`,
  async run(input, io) {
    const orders = read(input);
    const { endpoints, timeoutMs: callTimeoutMs } = readEndpoints(input, io);
    input.finish('run');
    // A reader of standard error that went away must not end this process, and leave the command without a keeper.
    process.stderr.on('error', () => undefined);
    const signals = new Signals();
    const client = connect({ endpoints, callTimeoutMs, holder: orders.holder });
    try {
      const lease = await acquire(client, orders, signals);
      if (lease === undefined) return signals.exitCode();
      const outcome = await supervise(lease, {
        ...orders,
        environment: environmentOf(lease, io),
        say: (text) => {
          io.err(`fencepost run: ${text}`);
        },
        forward: (send) => {
          signals.receive = send;
        },
      });
      // Whoever does not want to wait for an answer any more may say so.
      await Promise.race([lease.release(), signals.next()]);
      return exitCodeOf(outcome, orders.command, io);
    } catch (error) {
      if (error instanceof NotGrantedError) {
        const { reason, current } = error;
        io.err(`fencepost run: ${orders.domain} was not granted: ${NOT_GRANTED[reason]}`);
        if (current !== undefined)
          io.err(`held by ${current.holder}, token ${current.token}, since ${current.grantedAt.toISOString()}`);
        return RUN_EXIT.notGranted;
      }
      if (!(error instanceof FencepostError)) throw error;
      return printFailure(io, false, 'run', error) === EXIT.usage ? EXIT.usage : RUN_EXIT.failed;
    } finally {
      await client.close();
      signals.close();
    }
  },
};

interface RunOrders extends Asked {
  readonly command: readonly string[];
  readonly ttlMs: number;
  readonly stopSignal: NodeJS.Signals;
  readonly killAfterMs: number;
}

function read(input: Input): RunOrders {
  const command = input.behindDashes();
  const asked = readAsked(input);
  const ttlMs = asked.ttlMs ?? DEFAULT_TTL_MS;
  if (command.length === 0) input.fault('the command is missing: fencepost run <domain> -- <command> [argument…]');
  if (command[0] === '') input.fault('the command must not be empty');
  if (process.platform === 'win32') input.fault('run needs process groups, which Windows does not have');
  const name = input.text('signal') ?? 'SIGTERM';
  if (!isSignal(name)) input.fault(`--signal must be the name of a signal, as SIGTERM, not ${JSON.stringify(name)}`);
  const killAfterMs = input.integer('kill-after-ms', 0, MAX_TTL_MS) ?? Math.floor(ttlMs * DEFAULT_STOP);
  const most = Math.floor(ttlMs * MAX_STOP);
  if (killAfterMs > most)
    input.fault(
      `--kill-after-ms must be at most a third of the TTL, ${most}, not ${killAfterMs}; or take a longer --ttl-ms`,
    );
  return { ...asked, command, ttlMs, stopSignal: name as NodeJS.Signals, killAfterMs };
}

/** Undefined when a signal ended the wait. */
async function acquire(client: Client, orders: RunOrders, signals: Signals): Promise<Lease | undefined> {
  const { domain, ttlMs, waitMs, slots, coolDownMs, metadata } = orders;
  const given = new AbortController();
  signals.receive = () => {
    given.abort();
  };
  try {
    return await client.acquire(domain, {
      ttlMs,
      waitMs,
      slots,
      coolDownMs,
      metadata: Object.fromEntries(metadata),
      signal: given.signal,
    });
  } catch (error) {
    if (given.signal.aborted) return undefined;
    throw error;
  }
}

function environmentOf(lease: Lease, io: Io): NodeJS.ProcessEnv {
  return {
    ...io.environment,
    FENCING_DOMAIN: lease.domain,
    FENCING_TOKEN: String(lease.token),
    FENCING_CLUSTER: lease.cluster,
    FENCING_INCARNATION: lease.incarnation,
  };
}

function exitCodeOf(outcome: Outcome, command: readonly string[], io: Io): number {
  switch (outcome.type) {
    case 'exited':
      return outcome.code;
    case 'signalled':
      return RUN_EXIT.signalled + constants.signals[outcome.signal];
    case 'lost':
      return RUN_EXIT.lost;
    case 'notStarted': {
      const missing = outcome.error.code === 'ENOENT';
      const why = missing ? 'was not found' : `cannot be executed: ${outcome.error.message}`;
      io.err(`fencepost run: ${command[0] ?? ''} ${why}`);
      return missing ? RUN_EXIT.notFound : RUN_EXIT.notExecutable;
    }
  }
}

function isSignal(name: string): name is NodeJS.Signals {
  return Object.hasOwn(constants.signals, name);
}

/** The signals that this process gets go to whoever is to have them now. */
class Signals {
  /** Replaced as the work goes on. */
  receive: (signal: NodeJS.Signals) => void = () => undefined;
  #last: NodeJS.Signals = 'SIGTERM';
  readonly #listener = (signal: NodeJS.Signals): void => {
    this.#last = signal;
    this.receive(signal);
  };

  constructor() {
    for (const signal of FORWARDED) process.on(signal, this.#listener);
    // Ctrl-Z would stop this process and not the command, which would run on without renewals.
    process.on('SIGTSTP', ignore);
  }

  /** Resolves with the next signal. */
  next(): Promise<NodeJS.Signals> {
    return new Promise((resolve) => {
      this.receive = resolve;
    });
  }

  /** For an end by the last signal. */
  exitCode(): number {
    return RUN_EXIT.signalled + constants.signals[this.#last];
  }

  close(): void {
    for (const signal of FORWARDED) process.off(signal, this.#listener);
    process.off('SIGTSTP', ignore);
  }
}

function ignore(): void {
  // On purpose.
}
