/** What every simulated client is given, and what the world sees of it. */
import type { Domain } from '../../../src/base/ids.js';
import type { Claim } from '../judges/holds.js';
import type { Machine } from '../machine.js';
import type { Report } from '../observation.js';
import type { ClientParameters } from '../parameters.js';
import type { Server, Surroundings } from '../ports.js';
import type { Write } from '../resource.js';
import type { Attempts } from './attempts.js';
import type { ClientLinks } from './network.js';

/** See the head of the file. */
export interface ClientPorts {
  /** The name of the machine. */
  readonly name: string;
  readonly surroundings: Surroundings;
  readonly machine: Machine;
  readonly links: ClientLinks;
  readonly parameters: ClientParameters;
  readonly codecs: boolean;
  readonly domains: readonly Domain[];
  /** How many slots a domain is meant to have; 1 for one that does not count. */
  readonly slotsOf: (domain: Domain) => number;
  readonly servers: () => readonly Server[];
  readonly attempts: Attempts;
  readonly report: Report;
  /** A write arrives at the resource. */
  readonly writes: (write: Write) => void;
  /** Every client is asked now what it claims to hold. */
  readonly look: () => void;
  /** The machine sleeps for so many true milliseconds, and its wall clock is set back by so many meanwhile. */
  readonly sleep: (ms: number, wallBackMs: number) => void;
}

/** One client machine. */
export interface SimClient {
  start(): void;
  /** No new work. */
  stop(): void;
  /** Nothing of it is under way any more; only after {@link stop}. */
  readonly idle: boolean;
  /** Timers and streams that closed clients have left behind. */
  readonly leaked: number;
  /** What it claims to hold at this very moment, by its own clocks; nothing while it stands still. */
  claims(): readonly Claim[];
  halt(why: 'stopped' | 'asleep'): void;
  goOn(why: 'stopped' | 'asleep'): void;
}
