/** Bytes that are written by hand are those that protobufjs writes for the same fields. */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { Command } from '../../src/lease/commands.js';
import { encodeCommand } from '../../src/wire/command.js';
import { FieldWriter } from '../../src/wire/field-writer.js';
import { messageType } from '../../src/wire/proto.js';
import { encodeStateRecord } from '../../src/wire/state.js';
import * as any from './arbitraries.js';

/** What protobufjs writes for the parts that it reads in `bytes`, and for those that are 0 or empty where they are not there. */
function again(name: string, bytes: Uint8Array): number[] {
  const type = messageType(name);
  const parts = type.toObject(type.decode(bytes), { defaults: true });
  return [...type.encode(type.fromObject(parts)).finish()];
}

describe('written by hand', () => {
  it('commands', () => {
    fc.assert(
      fc.property(any.command, (command) => {
        const bytes = encodeCommand(command);
        expect([...bytes]).toEqual(again('Command', bytes));
      }),
      { numRuns: 2_000 },
    );
  });

  it('records of the table', () => {
    const names = {
      domain: 'DomainRecord',
      waiter: 'WaiterRecord',
      coolDown: 'CoolDownRecord',
      counting: 'CountingRecord',
      finished: 'FinishedRecord',
    } as const;
    fc.assert(
      fc.property(any.stateRecord, (record) => {
        const { value } = encodeStateRecord(record);
        expect([...value]).toEqual(again(names[record.type], value));
      }),
      { numRuns: 2_000 },
    );
  });

  it('text, metadata and messages of any length', () => {
    const lengths = [0, 1, 126, 127, 128, 129, 16_250, 16_383, 16_384, 70_000];
    const command: Command = {
      type: 'acquire',
      domain: 'd',
      requestId: '0b0f7a3c-5f0e-4f6b-8a53-0d6d8d1a2b3c',
      holder: 'h',
      ttlMs: 2 ** 32 - 1,
      metadata: [],
      seenRevision: Number.MAX_SAFE_INTEGER,
      atUnixMs: 2 ** 31,
      owner: '',
      waitMs: 0,
      coolDownMs: 0,
      slots: 1,
      principal: 'p',
    } as unknown as Command;
    for (const length of lengths) {
      for (const character of ['x', 'é', '€', '😀']) {
        const text = character.repeat(length);
        const bytes = encodeCommand({ ...command, owner: text, metadata: [[text, text]] } as Command);
        expect(Buffer.compare(bytes, Buffer.from(again('Command', bytes)))).toBe(0);
        expect(messageType('Command').decode(bytes).toJSON()).toMatchObject({ acquire: { owner: text } });
      }
    }
  });

  it('integers up to 2^53 - 1', () => {
    fc.assert(
      fc.property(any.count, (value) => {
        const writer = new FieldWriter();
        writer.integer(2, value);
        const bytes = writer.take();
        expect([...bytes]).toEqual([...messageType('ReleaseCommand').encode({ token: value }).finish()]);
      }),
      { numRuns: 2_000, examples: [[2 ** 31 - 1], [2 ** 31], [2 ** 32], [2 ** 35 - 1], [2 ** 53 - 1]] },
    );
  });

  it('nothing of a message that failed is in the next', () => {
    const release = {
      type: 'release',
      domain: 'd',
      token: 5,
      owner: '',
      detached: [],
      atUnixMs: 1,
    } as unknown as Command;
    const bytes = encodeCommand(release);
    expect(() => encodeCommand({ ...release, atUnixMs: -1 } as Command)).toThrow(/atUnixMs is -1/);
    expect(encodeCommand(release)).toEqual(bytes);
  });
});
