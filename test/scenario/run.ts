/** Runs a scenario file against a world, and reports what does not hold. */
import { judgeClaim } from './claims.js';
import { COMMANDS } from './commands.js';
import { RAFT_CLAIMS } from './expect.js';
import type { Carry } from './raft-world.js';
import { RaftWorld } from './raft-world.js';
import { REPLICA_CLAIMS } from './replica-claims.js';
import { REPLICA_COMMANDS } from './replica-commands.js';
import { ReplicaWorld } from './replica-world.js';
import type { Step } from './script.js';
import { formatScript, headerFaults, parseScript } from './script.js';

/** What the runner asks of a world: the raft world, or a world of whole replicas. */
export interface World {
  readonly trace: readonly string[];
  /** Carries out one command and everything that follows from it. */
  run(words: readonly string[]): void;
  /** Undefined when the claim holds, else why not. */
  claim(words: readonly string[]): string | undefined;
  /** Invariants that broke so far. */
  faults(): readonly string[];
}

/** What came of a file. */
export interface Report {
  /** Claims and invariants that do not hold, and faults of the file. */
  readonly faults: readonly string[];
  /** The file with the traces of this run. */
  readonly rewritten: string;
}

function raftWorld(carry: Carry): World {
  const world = new RaftWorld(carry);
  return {
    get trace() {
      return world.trace;
    },
    run: ([name = '', ...words]) => {
      const command = COMMANDS[name];
      if (command === undefined) throw new Error(`no command "${name}"`);
      world.trace = [];
      world.sentBefore = world.network.sent.length;
      command(world, words);
      world.check();
      world.settle();
    },
    claim: (words) => judgeClaim(RAFT_CLAIMS, world, words),
    faults: () => world.invariants.faults,
  };
}

function replicaWorld(carry: Carry): World {
  const world = new ReplicaWorld(carry);
  return {
    get trace() {
      return world.trace;
    },
    run: ([name = '', ...words]) => {
      const command = REPLICA_COMMANDS[name];
      if (command === undefined) throw new Error(`no command "${name}"`);
      world.trace = [];
      world.sentBefore = world.network.sent.length;
      command(world, words);
      world.settle();
      world.check();
    },
    claim: (words) => judgeClaim(REPLICA_CLAIMS, world, words),
    faults: () => [...world.invariants.faults, ...world.clients.oracle.faults],
  };
}

/** Makes the world that a file speaks of. */
export const WORLDS: Readonly<Record<string, (carry: Carry) => World>> = { raft: raftWorld, lease: replicaWorld };

function runStep(world: World, step: Step): { readonly fault: string | undefined; readonly trace: readonly string[] } {
  try {
    if (step.words[0] === 'expect') return { fault: world.claim(step.words.slice(1)), trace: [] };
    world.run(step.words);
    const fault = world.faults().length > 0 ? world.faults().join('; ') : undefined;
    return { fault, trace: [...world.trace] };
  } catch (error) {
    return { fault: `NOCRASH: ${error instanceof Error ? error.message : String(error)}`, trace: [...world.trace] };
  }
}

/** Runs `text`; stops at the first command that breaks an invariant, since nothing after it means anything. */
export function runScenario(text: string, world: World): Report {
  const faults = headerFaults(text);
  const steps = parseScript(text);
  if (!steps.some((step) => step.words[0] === 'expect')) faults.push('no expect line: the scenario claims nothing');
  const traces = new Map<number, readonly string[]>();
  for (const step of steps) {
    if (step.words.length === 0) continue;
    const { fault, trace } = runStep(world, step);
    traces.set(step.line, trace);
    if (fault === undefined) continue;
    faults.push(`line ${step.line} "${step.source}": ${fault}`);
    if (step.words[0] !== 'expect') break;
  }
  return { faults, rewritten: formatScript(steps, traces) };
}
