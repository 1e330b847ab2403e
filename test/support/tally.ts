import type { SerializedError } from 'vitest';
import type { Reporter, TestCase, TestModule } from 'vitest/node';

/** Set to 1 where everything must run (`.ci/run`): a skipped test then fails the run. */
const FORBID_SKIPS = 'FENCEPOST_FORBID_SKIPS';

/**
 * Prints `N passed, N failed, N skipped` as the last line of a run, and before it what failed, and what was skipped and why.
 *
 * It counts what the runner's own summary hides: a file that cannot be imported, a worker that was killed and a
 * rejection after the last test each count as a failure. It writes at process exit, so nothing comes after it.
 */
export default class Tally implements Reporter {
  #passed = 0;
  /** Stands if the run ends before its end was reported. */
  #failed = 1;
  /** Names of what failed: `.ci/run` says them again at its end, a thousand lines after the runner's own report. */
  #failures: string[] = [];
  #skipped: string[] = [];

  onInit(): void {
    process.once('exit', (code) => {
      for (const line of [...this.#failures, ...this.#skipped]) process.stdout.write(`${line}\n`);
      const forbidden = this.#skipped.length > 0 && process.env[FORBID_SKIPS] === '1';
      if (forbidden) {
        process.stdout.write(`Nothing may be skipped here (${FORBID_SKIPS}=1): provide what the tests above need.\n`);
        process.exitCode = 1;
      }
      // Whatever made the run fail without failing a test, for example a global set-up.
      const failed = code === 0 && !forbidden ? this.#failed : Math.max(1, this.#failed);
      process.stdout.write(`${this.#passed} passed, ${failed} failed, ${this.#skipped.length} skipped\n`);
    });
  }

  onTestRunEnd(modules: readonly TestModule[], errors: readonly SerializedError[]): void {
    this.#passed = 0;
    this.#failed = errors.length;
    this.#failures = errors.map((error) => `failed: outside of a test: ${firstLine(error)}`);
    this.#skipped = [];
    for (const module of modules) {
      let failures = 0;
      for (const test of module.children.allTests()) {
        const result = test.result();
        if (result.state === 'passed') this.#passed++;
        else if (result.state === 'skipped') {
          this.#skipped.push(`skipped: ${nameOf(module, test)} (${result.note ?? 'no reason given'})`);
        } else {
          failures++;
          this.#failures.push(`failed: ${nameOf(module, test)}: ${firstLine(result.errors?.[0])}`);
        }
      }
      for (const suite of module.children.allSuites()) {
        const [error] = suite.errors();
        if (error === undefined) continue;
        failures++;
        this.#failures.push(`failed: ${module.relativeModuleId} > ${suite.fullName}: ${firstLine(error)}`);
      }
      const fine = module.state() === 'passed' || module.state() === 'skipped';
      if (failures === 0 && !fine) {
        failures = 1;
        this.#failures.push(`failed: ${module.relativeModuleId}: ${firstLine(module.errors()[0])}`);
      }
      this.#failed += failures;
    }
  }
}

function nameOf(module: TestModule, test: TestCase): string {
  return `${module.relativeModuleId} > ${test.fullName}`;
}

function firstLine(error: SerializedError | undefined): string {
  return error?.message.split('\n')[0] ?? 'no message';
}
