/** Real processes that write: killed at any moment, on a disk that fills up, at a limit for the size of files. */
import { execFileSync, spawn } from 'node:child_process';
import { mkdtempSync, rmdirSync } from 'node:fs';
import { mkdir } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { isDeepStrictEqual } from 'node:util';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createRandom, nextInt } from '../../src/base/random.js';
import { storeGenesis } from '../../src/storage/begin.js';
import { prepareDirectory } from '../../src/storage/directory.js';
import { openStore } from '../../src/storage/open.js';
import { DirectoryRefused } from '../../src/storage/refused.js';
import setupBuild from '../support/built.setup.js';
import { B, domainRecord, entry, EXPECTED, freshPath, genesisFor, hard, removePaths } from './fixtures.js';

const WRITER = join(import.meta.dirname, 'writer.mjs');

beforeAll(setupBuild, 120_000);
afterAll(removePaths);

/** What a process said, and how it ended. */
interface Run {
  readonly lines: readonly string[];
  readonly code: number | null;
  readonly errors: string;
}

/** Runs the writer; kills it after `killAfter` lines. */
async function run(command: readonly string[], killAfter = Infinity): Promise<Run> {
  const [program = '', ...args] = command;
  const child = spawn(program, args, { stdio: ['ignore', 'pipe', 'pipe'] });
  let output = '';
  let errors = '';
  child.stderr.on('data', (chunk: Buffer) => {
    errors += chunk.toString();
  });
  child.stdout.on('data', (chunk: Buffer) => {
    output += chunk.toString();
    if (output.split('\n').length > killAfter) child.kill('SIGKILL');
  });
  const code = await new Promise<number | null>((resolve) => child.on('close', resolve));
  return { lines: output.split('\n').slice(0, -1), code, errors };
}

const writer = (path: string, seed: number, payload: number) => [
  process.execPath,
  WRITER,
  path,
  `${seed}`,
  `${payload}`,
];

/** What must be on the disk, by what the writers said. */
class Said {
  terms: number[] = [];
  hard = hard(0);
  applied = 0;
  records = new Map<string, number>();
  acknowledged = 0;

  copy(): Said {
    const copy = Object.assign(new Said(), this);
    copy.terms = [...this.terms];
    copy.records = new Map(this.records);
    return copy;
  }

  apply(line: string): void {
    const [kind, ...words] = line.split(' ');
    const [first = 0, count = 0, term = 0] = words.map(Number);
    if (kind === 'write') {
      if (count > 0) this.terms.length = first - 1;
      for (let i = 0; i < count; i++) this.terms.push(term);
      this.hard = hard(term, words[3] === '-' ? undefined : B);
    } else {
      this.applied = first;
      this.records.set(words[1] ?? '', Number(words[2]));
    }
  }

  /** Text that is equal when the disk holds exactly this, from `anchor` on. */
  text(anchor: number): string {
    const records = [...this.records].sort(([a], [b]) => (a < b ? -1 : 1));
    return JSON.stringify([this.terms.slice(anchor), this.hard, this.applied, records]);
  }
}

/** Takes in what a run said, then opens the directory and holds it against that. Returns what the disk turned out to hold. */
async function check(path: string, before: Said, lines: readonly string[], payload: number): Promise<Said> {
  const acknowledged = before.copy();
  let underWay: string | undefined;
  for (const line of lines) {
    if (line === 'acknowledged' && underWay !== undefined) {
      acknowledged.apply(underWay);
      acknowledged.acknowledged++;
      underWay = undefined;
    } else if (/^(write|cut) /.test(line)) underWay = line;
  }
  const withLast = acknowledged.copy();
  if (underWay !== undefined) withLast.apply(underWay);
  const store = await openStore(path, EXPECTED);
  await store.close();
  const { anchor, entries, hard: found, snapshot, records } = store.loaded;
  for (const one of entries)
    expect(isDeepStrictEqual(one, entry(one.index, one.term, payload)), `entry ${one.index}`).toBe(true);
  expect(anchor.index).toBeLessThanOrEqual(snapshot.index);
  const onDisk = new Said();
  onDisk.terms = [...acknowledged.terms.slice(0, anchor.index), ...entries.map((one) => one.term)];
  onDisk.hard = found;
  onDisk.applied = snapshot.index;
  for (const record of records) {
    if (record.type !== 'domain') throw new Error('a record that nobody wrote');
    expect(record).toEqual(domainRecord(record.domain, record.lease.token));
    onDisk.records.set(record.domain, record.lease.token);
  }
  expect([acknowledged, withLast].map((said) => said.text(anchor.index))).toContain(onDisk.text(anchor.index));
  onDisk.acknowledged = acknowledged.acknowledged;
  return onDisk;
}

async function newMember(path: string): Promise<void> {
  const directory = await prepareDirectory(path, EXPECTED);
  await storeGenesis(path, genesisFor(directory), directory);
}

describe('a process that is killed in the middle of writes', () => {
  it('finds every acknowledged one again, each time, and is never refused', async () => {
    const path = await freshPath();
    await newMember(path);
    const random = createRandom(20_261_201);
    let said = new Said();
    for (let round = 0; round < 8; round++) {
      const { lines, errors } = await run(writer(path, round, 40), nextInt(random, 2, 150));
      expect(errors).toBe('');
      expect(lines[0]).toBe('started');
      said = await check(path, said, lines, 40);
    }
    expect(said.acknowledged).toBeGreaterThan(100);
  }, 120_000);
});

describe('a process to which the disk refuses a write', () => {
  /** Runs a writer until it fails, makes room, and looks for everything it acknowledged; then writes on. */
  const untilRefused = async (path: string, limit: readonly string[], payload: number, makeRoom: () => void) => {
    await newMember(path);
    const { lines, code, errors } = await run([...limit, ...writer(path, payload, payload)]);
    expect(errors).toBe('');
    expect(lines.at(-1)).toMatch(/^failed /);
    expect(code).toBe(74);
    await mayStartFull(path);
    makeRoom();
    const said = await check(path, new Said(), lines, payload);
    expect(said.acknowledged).toBeGreaterThan(10);
    const more = await run(writer(path, 1, payload), 40);
    expect((await check(path, said, more.lines, payload)).acknowledged).toBeGreaterThan(said.acknowledged);
    return lines.at(-1);
  };

  /** On a disk that is still full, a start may fail, but does not call it damage. */
  const mayStartFull = async (path: string) => {
    try {
      await (await openStore(path, EXPECTED)).close();
    } catch (error) {
      expect(error).toBeInstanceOf(DirectoryRefused);
      expect(String(error)).toMatch(/No space left on device\. See that the file system has room/);
    }
  };

  const mount = whyNoMount();
  it.skipIf(mount !== undefined)(
    `because it is full ends with code 74, and finds everything again${mount === undefined ? '' : ` (skipped: ${mount})`}`,
    async () => {
      // In the write-ahead log of 3 MiB the write itself fails; with 6 MiB LevelDB's moving it into a table does.
      for (const [size, payload] of [
        ['3m', 40_000],
        ['3m', 2_999],
        ['6m', 20_000],
      ] as const) {
        const disk = await freshPath();
        await mkdir(disk);
        execFileSync('mount', ['-t', 'tmpfs', '-o', `size=${size}`, 'tmpfs', disk]);
        try {
          const said = await untilRefused(join(disk, 'data'), [], payload, () => {
            execFileSync('mount', ['-o', 'remount,size=60m', disk]);
          });
          expect(said).toMatch(/No space left/);
        } finally {
          execFileSync('umount', [disk]);
        }
      }
    },
    120_000,
  );

  it.skipIf(process.platform === 'win32')(
    'because of a limit to the size of files does the same',
    async () => {
      for (const blocks of [700, 1_501]) {
        await untilRefused(
          await freshPath(),
          ['bash', '-c', `ulimit -f ${blocks}; exec "$0" "$@"`],
          3_000,
          () => undefined,
        );
      }
    },
    120_000,
  );
});

/** Why this system does not let us make a small file system; undefined when it does. */
function whyNoMount(): string | undefined {
  if (process.platform !== 'linux') return 'only Linux has tmpfs';
  if (process.getuid?.() !== 0) return 'mounting a small file system needs root';
  const point = mkdtempSync(join(tmpdir(), 'fencepost-mount-'));
  try {
    execFileSync('mount', ['-t', 'tmpfs', 'tmpfs', point], { stdio: 'ignore' });
    execFileSync('umount', [point]);
    return undefined;
  } catch {
    return 'mounting is not allowed here';
  } finally {
    rmdirSync(point);
  }
}
