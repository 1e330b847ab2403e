/**
 * Golden scenarios: published bugs of Raft systems as text files, run on real cores over a simulated disk and network.
 * The claims must hold by themselves; the recorded trace shows reviewers what a change of the protocol changes.
 * `UPDATE_GOLDEN=1` records anew; `SCENARIO_EXPECT_ONLY=1` leaves the traces out of the comparison.
 */
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import type { Message } from '../../src/raft/types.js';
import { decodeMessage, encodeMessage } from '../../src/wire/message.js';
import { runScenario, WORLDS } from './run.js';

const FOLDER = import.meta.dirname;

/** Hands the very object on; it is frozen, so a core that writes to it is caught. */
const direct = (message: Message): Message => message;

/** Sends every message through the bytes of the wire. */
const encoded = (message: Message): Message => decodeMessage(encodeMessage(message));

const folders = Object.keys(WORLDS).map((name) => join(FOLDER, name));
const files = folders.flatMap((folder) => readdirSync(folder).map((name) => join(folder, name)));

function run(file: string, carry: (message: Message) => Message): ReturnType<typeof runScenario> {
  const world = WORLDS[file.split('/').at(-2) ?? ''];
  if (world === undefined) throw new Error(`${file} belongs to no world`);
  return runScenario(readFileSync(file, 'utf8'), world(carry));
}

describe.each(files.map((file) => [file.slice(FOLDER.length + 1), file] as const))('%s', (_name, file) => {
  const { faults, rewritten } = run(file, direct);

  it('keeps its claims and its invariants', () => {
    expect(faults).toEqual([]);
  });

  it('keeps them over the wire format', () => {
    expect(run(file, encoded).faults).toEqual([]);
  });

  it.skipIf(process.env['SCENARIO_EXPECT_ONLY'] === '1')('does what is recorded', () => {
    if (process.env['UPDATE_GOLDEN'] === '1' && faults.length === 0) writeFileSync(file, rewritten);
    expect(rewritten).toBe(readFileSync(file, 'utf8'));
  });
});
