/**
 * Asks again and again what the next start would find if the machine lost power now, or if the disk were damaged while
 * nobody uses it. It is asked of copies: the run goes on as if nobody had asked. So a crash is tried between any two
 * operations, and damage of every kind, without a member that is lost for it.
 */
import { isDeepStrictEqual } from 'node:util';
import { nextInt, type Random } from '../../../src/base/random.js';
import type { Loaded } from '../../../src/replica/types.js';
import { inspectDirectory, type Expected } from '../../../src/storage/directory.js';
import { openStore } from '../../../src/storage/open.js';
import { DirectoryRefused } from '../../../src/storage/refused.js';
import { Coverage } from '../coverage.js';
import type { Fault } from '../observation.js';
import { Scheduler } from '../scheduler.js';
import { flipByte, loseWrites, placeOf, type Place } from './damage.js';
import { Device } from './device.js';
import { DirectoryNode } from './file-tree.js';
import { simulatedDatabases } from './sim-database.js';
import { find, simulatedFiles } from './sim-files.js';

/** What a start finds. */
export type Outcome =
  /** It may form: nothing was promised from here. */
  | { readonly type: 'nothing' }
  | { readonly type: 'refused'; readonly message: string }
  | { readonly type: 'found'; readonly loaded: Loaded };

/** Who asks, how often, and who judges. */
export interface TrialOptions {
  /** A stream of its own. */
  readonly random: Random;
  /** One in so many operations is preceded by a trial. */
  readonly every: number;
  readonly coverage: Coverage;
  /** What is wrong with what a start finds after a power loss at this moment; undefined when it is what it must be. */
  readonly afterPowerLoss: (outcome: Outcome) => Fault | undefined;
  readonly report: (fault: Fault) => void;
  /** A start threw what is no refusal. */
  readonly threw: (error: unknown) => void;
}

/** Of a disk at rest, damage is tried in so many ways at a time. */
const DAMAGES = 3;
/** One in so many disks that lost power is damaged, too. */
const DAMAGE_EVERY = 3;
/** So many operations that follow something rare are all tried. */
const DENSE = 12;
/** A start takes fewer steps than this. */
const MAX_STEPS = 1_000_000;

/** See the head of the file. One for each disk. */
export class Trials {
  readonly #options: TrialOptions;
  readonly #expected: Expected;
  readonly #path: string;
  readonly #root: () => DirectoryNode;
  readonly #aside: Device;
  readonly #scheduler = new Scheduler();
  /** Operations that are still to be tried, all of them. */
  #dense = 0;

  /** `root` is the disk as it is now, with the data directory at `path`. */
  constructor(options: TrialOptions, path: string, expected: Expected, root: () => DirectoryNode) {
    this.#options = options;
    this.#path = path;
    this.#expected = expected;
    this.#root = root;
    const { random } = options;
    const around = { scheduler: this.#scheduler, random, coverage: new Coverage(), trace: () => undefined };
    this.#aside = new Device(expected.node, around, { syncMs: [0, 0], stepMs: [0, 0] });
  }

  /** A write is about to end: what was reported by now must outlive a power loss. */
  beforeWrite(): void {
    if (this.#dense === 0 && !this.#oneIn(this.#options.every)) return;
    this.#dense = Math.max(0, this.#dense - 1);
    this.#losePower(this.#root().fork()).catch(this.#options.threw);
  }

  /** Something is handed over to a store at rest whose MARK is exact. */
  atRest(): void {
    if (this.#oneIn(this.#options.every)) this.#rest(this.#root().fork()).catch(this.#options.threw);
  }

  /** Something rare is handed over: what comes is looked at closely. */
  watchClosely(): void {
    this.#dense = DENSE;
  }

  async #losePower(root: DirectoryNode): Promise<void> {
    root.losePower(this.#aside);
    this.#options.coverage.count('power loss tried');
    const outcome = await this.#start(root.fork());
    const fault = this.#options.afterPowerLoss(outcome);
    if (fault !== undefined) this.#options.report({ ...fault, text: `if power were lost now: ${fault.text}` });
    else if (outcome.type === 'found' && this.#oneIn(DAMAGE_EVERY)) await this.#damage(root, outcome.loaded, false);
  }

  async #rest(root: DirectoryNode): Promise<void> {
    const outcome = await this.#start(root.fork());
    if (outcome.type !== 'found') return;
    for (let tried = 0; tried < DAMAGES; tried++) await this.#damage(root, outcome.loaded, true);
  }

  /** What is read from a damaged disk is `loaded`, as without damage, or the start is refused. `exact`: its MARK is. */
  async #damage(root: DirectoryNode, loaded: Loaded, exact: boolean): Promise<void> {
    const { random, coverage, report } = this.#options;
    const copy = root.fork();
    const place = this.#placeOf(copy);
    if (place === undefined) return;
    const what = exact && !this.#oneIn(4) ? loseWrites(place, loaded, random) : flipByte(place, random);
    if (what === undefined) return;
    const damaged = await this.#start(copy);
    if (damaged.type === 'refused') coverage.count('damaged copy refused');
    else if (damaged.type === 'found' && isDeepStrictEqual(damaged.loaded, loaded)) coverage.count('damage harmless');
    else report({ code: 'DAMAGE', text: `a damaged disk is taken for what it was: ${what}` });
  }

  #placeOf(root: DirectoryNode): Place | undefined {
    const directory = find(root, this.#path);
    return directory instanceof DirectoryNode ? placeOf(directory) : undefined;
  }

  /** A start of a process on the disk below `root`, within this turn of the loop. */
  async #start(root: DirectoryNode): Promise<Outcome> {
    let outcome: Outcome | undefined;
    let thrown: unknown;
    this.#open(root).then(
      (found) => (outcome = found),
      (error: unknown) => (thrown = error),
    );
    for (let step = 0; outcome === undefined && thrown === undefined && step < MAX_STEPS; step++) {
      this.#scheduler.runNext(Infinity);
      await Promise.resolve();
    }
    if (thrown instanceof DirectoryRefused) return { type: 'refused', message: thrown.message };
    if (outcome === undefined) throw thrown instanceof Error ? thrown : new Error('a start does not end');
    return outcome;
  }

  async #open(root: DirectoryNode): Promise<Outcome> {
    const { process } = this.#aside;
    const files = simulatedFiles(root, this.#aside, process);
    const { type } = await inspectDirectory(this.#path, this.#expected, files);
    if (type !== 'member') return { type: 'nothing' };
    const ports = { files, databases: simulatedDatabases(root, process), after: () => () => undefined };
    return { type: 'found', loaded: (await openStore(this.#path, this.#expected, ports)).loaded };
  }

  #oneIn(times: number): boolean {
    return nextInt(this.#options.random, 1, times) === 1;
  }
}
