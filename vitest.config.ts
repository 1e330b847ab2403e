import { defineConfig } from 'vitest/config';

interface More {
  readonly exclude?: string[];
  readonly isolate?: boolean;
  readonly testTimeout: number;
  readonly hookTimeout?: number;
  readonly fileParallelism?: boolean;
  readonly sequence?: { readonly groupOrder: number };
  readonly globalSetup?: string[];
}

const project = (name: string, include: string[], more: More) => ({
  extends: true as const,
  test: { name, include, ...more },
});

const pure = ['test/{base,raft,lease,replica,wire,scenario,sim}/**/*.test.ts'];
const storage = ['test/storage/**/*.test.ts'];
const transport = ['test/transport/**/*.test.ts'];
const packages = ['test/package/**/*.test.ts'];
const processes = ['test/process/**/*.test.ts'];

export default defineConfig({
  test: {
    pool: 'forks',
    maxWorkers: 2,
    // A test that passes at the second try has found something: nothing is ever repeated.
    retry: 0,
    reporters: ['default', './test/support/tally.ts'],
    projects: [
      // No sockets, no module state: one worker may run many files, which saves 0.2 s a file.
      project('core', pure, { testTimeout: 30_000, isolate: false }),
      project('storage', storage, { testTimeout: 60_000 }),
      project('transport', transport, { testTimeout: 30_000 }),
      // Whatever is in no other project, so that no file is ever left out.
      project('edge', ['test/**/*.test.ts'], {
        testTimeout: 30_000,
        exclude: [...pure, ...storage, ...transport, ...packages, ...processes, '**/node_modules/**'],
      }),
      // What a program that has installed the package sees: `dist`, by its exports.
      project('package', packages, { testTimeout: 60_000, globalSetup: ['test/support/built.setup.ts'] }),
      // Real processes of `dist`, one file at a time, after everything else: they need the machine for themselves.
      project('process', processes, {
        testTimeout: 180_000,
        hookTimeout: 180_000,
        fileParallelism: false,
        sequence: { groupOrder: 1 },
        globalSetup: ['test/support/built.setup.ts'],
      }),
    ],
  },
});
