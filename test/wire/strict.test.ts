/** What strict decoders refuse, and the bytes that are on disks already. */
import { describe, expect, it } from 'vitest';
import { AssertionFailed } from '../../src/base/assert.js';
import type { DirectoryId, Domain, Incarnation, NodeId, RequestId } from '../../src/base/ids.js';
import { STATE_LIMITS } from '../../src/base/limits.js';
import type { Revision } from '../../src/base/revision.js';
import type { Command } from '../../src/lease/commands.js';
import type { Lease } from '../../src/lease/types.js';
import type { Configuration, Message } from '../../src/raft/types.js';
import type { Genesis } from '../../src/replica/types.js';
import { decodeChunk, encodeChunk } from '../../src/wire/chunk.js';
import { decodeCommand, encodeCommand } from '../../src/wire/command.js';
import { decodeConfiguration, encodeConfiguration } from '../../src/wire/configuration.js';
import { CorruptBytes } from '../../src/wire/corrupt.js';
import { decodeGenesis, encodeGenesis } from '../../src/wire/genesis.js';
import { decodeMessage, encodeMessage } from '../../src/wire/message.js';
import { encodeFields, messageType } from '../../src/wire/proto.js';
import { encodeStateRecord } from '../../src/wire/state.js';

const ID = '123e4567-e89b-42d3-a456-426614174000' as RequestId;
const ID_HEX = Buffer.from(ID).toString('hex');
const A = 'a' as Domain;
const member = (node: string, digit: string): { node: NodeId; directory: DirectoryId } => ({
  node: node as NodeId,
  directory: digit.repeat(32) as DirectoryId,
});
const release: Command = { type: 'release', domain: A, token: 9 as Revision, owner: '', detached: [], atUnixMs: 0 };
const lease: Lease = {
  domain: A,
  token: 1_796_000_000_000_041 as Revision,
  requestId: ID,
  holder: 'h',
  metadata: [['k', 'v']],
  ttlMs: 15_000,
  coolDownMs: 6_000,
  grantedAtUnixMs: 1_796_000_000_000,
  owner: '',
  principal: 'p',
  version: 2,
  checkpointLeftMs: 7_000,
};
const configuration: Configuration = { voters: [member('n1', 'a')], outgoing: [], learners: [] };

/** The bytes of a message whose `fields` no encoder would write. */
const made = (name: string, fields: object): Uint8Array => encodeFields(messageType(name), { ...fields });
/** 64 bits that no number holds. */
const TWO_TO_53 = { high: 2 ** 21, low: 0, unsigned: true };
const TWO_TO_53_AND_1 = { high: 2 ** 21, low: 1, unsigned: true };
const TWO_TO_64_LESS_1 = { high: -1, low: -1, unsigned: true };
const hex = (bytes: Uint8Array): string => Buffer.from(bytes).toString('hex');

describe('a command', () => {
  const body = { domain: 'a', token: 9, owner: '' };

  it('without a format, or of a newer one, is refused and says so', () => {
    expect(() => decodeCommand(made('Command', { release: body }))).toThrow('command: has no format version');
    expect(() => decodeCommand(made('Command', { format: 2, release: body }))).toThrow(/start a newer version/);
  });

  it('of no kind, or of an unknown one, is refused', () => {
    expect(() => decodeCommand(made('Command', { format: 1 }))).toThrow(/command is not set/);
    // Field 100, length 0: what a newer version might write.
    expect(() => decodeCommand(Uint8Array.of(0x08, 1, 0xa2, 0x06, 0))).toThrow(CorruptBytes);
  });

  it.each([
    ['domain', { ...body, domain: 'a//b' }],
    ['domain', { ...body, domain: '' }],
    ['token is 0', { ...body, token: 0 }],
    ['token is above 2^53', { ...body, token: TWO_TO_53 }],
    ['token is above 2^53', { ...body, token: TWO_TO_64_LESS_1 }],
    ['owner is not valid UTF-8', { ...body, owner: 'x\ufffd' }],
    ['domain', { ...body, domain: 'a#01' }],
    ['domain', { ...body, domain: 'a#1000' }],
    ['detached', { ...body, detached: [ID, 'x'] }],
    ['detached', { ...body, detached: [ID.toUpperCase()] }],
    ['atUnixMs is above 2^53', { ...body, atUnixMs: TWO_TO_53 }],
  ])('with a wrong part is refused: %s', (fault, wrong) => {
    expect(() => decodeCommand(made('Command', { format: 1, release: wrong }))).toThrow(fault);
  });

  it('reads the greatest number that it may hold', () => {
    const greatest = { ...release, token: Number.MAX_SAFE_INTEGER as Revision };
    expect(decodeCommand(encodeCommand(greatest))).toEqual(greatest);
  });

  it.each([2 ** 53, -1, 1.5, Number.NaN, Number.POSITIVE_INFINITY])('with the number %d is not written', (token) => {
    expect(() => encodeCommand({ ...release, token: token as Revision })).toThrow(AssertionFailed);
  });

  it('with a lone surrogate is not written', () => {
    expect(() => encodeCommand({ ...release, owner: '\ud800' })).toThrow(AssertionFailed);
  });

  it('with a TTL, a wait, a cool-down or a number of slots that does not fit is not written', () => {
    const acquire: Command = {
      type: 'acquire',
      domain: A,
      requestId: ID,
      holder: 'h',
      ttlMs: 2 ** 32,
      metadata: [],
      seenRevision: 0 as Revision,
      atUnixMs: 0,
      owner: '',
      waitMs: 0,
      coolDownMs: 0,
      slots: 1,
      principal: 'p',
    };
    expect(encodeCommand({ ...acquire, ttlMs: 1 }).length).toBeGreaterThan(0);
    for (const wrong of [{}, { ttlMs: 1, waitMs: -1 }, { ttlMs: 1, coolDownMs: 2 ** 32 }, { ttlMs: 1, slots: 0.5 }]) {
      expect(() => encodeCommand({ ...acquire, ...wrong })).toThrow(AssertionFailed);
    }
  });

  it('of more slots than a name may have is refused', () => {
    const acquire = { domain: 'a', requestId: ID, holder: 'h', ttlMs: 1, principal: 'p' };
    const read = (slots: number): Command =>
      decodeCommand(made('Command', { format: 1, acquire: { ...acquire, slots } }));
    expect(read(1_000)).toMatchObject({ slots: 1_000 });
    for (const slots of [0, 1_001, 2 ** 32 - 1]) expect(() => read(slots)).toThrow(CorruptBytes);
  });

  it('with metadata out of order or repeated is refused', () => {
    const acquire = { domain: 'a', requestId: ID, holder: 'h', ttlMs: 1, slots: 1, principal: 'p' };
    const pair = (key: string): object => ({ key, value: '' });
    for (const metadata of [
      [pair('b'), pair('a')],
      [pair('a'), pair('a')],
    ]) {
      expect(() => decodeCommand(made('Command', { format: 1, acquire: { ...acquire, metadata } }))).toThrow(/sorted/);
    }
  });
});

describe('a chunk', () => {
  it('with any byte changed, cut anywhere or followed by more is refused', () => {
    const bytes = encodeChunk({
      term: 1,
      request: 2,
      sequence: 3,
      meta: { index: 4, term: 1, configuration, configurationIndex: 0 },
      summary: { forgotten: 0 as Revision, holding: false, limits: STATE_LIMITS },
      records: [{ type: 'domain', domain: A, lease }],
      total: undefined,
    });
    for (let at = 0; at < bytes.length; at++) {
      const copy = Uint8Array.from(bytes);
      copy[at] = (copy[at] ?? 0) ^ 0x10;
      expect(() => decodeChunk(copy)).toThrow(CorruptBytes);
      expect(() => decodeChunk(bytes.subarray(0, at))).toThrow(CorruptBytes);
    }
    expect(() => decodeChunk(Uint8Array.from([...bytes, 0]))).toThrow(CorruptBytes);
    expect(decodeChunk(bytes)).toMatchObject({ sequence: 3, records: [{ domain: 'a' }] });
  });
});

describe('genesis', () => {
  const genesis: Genesis = {
    incarnation: 'c'.repeat(32) as Incarnation,
    cluster: 'local',
    history: { base: 1_796_000_000_000_000 as Revision, start: 0 },
    startTerm: 0,
    holdMs: 0,
    limits: STATE_LIMITS,
    members: [member('n1', 'a'), member('n2', 'b')],
    stateDigest: '',
  };

  it('with members unsorted, repeated or missing is refused', () => {
    for (const members of [[], [member('n2', 'b'), member('n1', 'a')], [member('n1', 'a'), member('n1', 'b')]]) {
      expect(() => decodeGenesis(encodeGenesis({ ...genesis, members }))).toThrow(CorruptBytes);
    }
  });

  it('with a wrong id, an empty name or no base is refused', () => {
    const wrong: readonly Partial<Genesis>[] = [
      { incarnation: 'C'.repeat(32) as Incarnation },
      { cluster: '' },
      { history: { base: 0 as Revision, start: 0 } },
      { members: [member('n 1', 'a')] },
      { members: [member('n1', 'g')] },
    ];
    for (const fields of wrong) {
      expect(() => decodeGenesis(encodeGenesis({ ...genesis, ...fields }))).toThrow(CorruptBytes);
    }
  });

  it('is on disk in this form', () => {
    expect(hex(encodeGenesis(genesis))).toBe(
      '08011220' +
        '63'.repeat(32) +
        '1a056c6f63616c' +
        '20808091b0bdae980328003000380042120880800410e80718c0843d20a08d0628904e4a260a026e311220' +
        '61'.repeat(32) +
        '4a260a026e321220' +
        '62'.repeat(32) +
        '5200',
    );
  });
});

describe('a message', () => {
  const envelope = { from: member('n1', 'a'), to: member('n2', 'b'), term: 3 };
  const parts = {
    from: { nodeId: 'n1', directoryId: 'a'.repeat(32) },
    to: { nodeId: 'n2', directoryId: 'b'.repeat(32) },
    term: 3,
  };

  it('without sender, receiver, body or a part of it is refused', () => {
    const vote = { last: { index: 1, term: 1 }, attempt: 1, transfer: false };
    expect(decodeMessage(made('CoreMessage', { ...parts, vote }))).toMatchObject({ type: 'vote', term: 3 });
    for (const wrong of [
      { ...parts },
      { ...parts, from: undefined, vote },
      { ...parts, to: undefined, vote },
      { ...parts, vote: { ...vote, last: undefined } },
      { ...parts, appendReply: { request: 1, durable: 0, diskLow: false } },
      { ...parts, term: TWO_TO_53_AND_1, vote },
    ]) {
      expect(() => decodeMessage(made('CoreMessage', wrong))).toThrow(CorruptBytes);
    }
  });

  it('decodes a configuration entry and refuses one that holds none', () => {
    const payload = encodeConfiguration(configuration);
    const append = (entry: object): Uint8Array =>
      made('CoreMessage', {
        ...parts,
        append: { prev: { index: 4, term: 2 }, entries: [entry], commit: 4, request: 1 },
      });
    expect(decodeMessage(append({ term: 3, kind: 3, payload }))).toMatchObject({
      entries: [{ index: 5, kind: 'configuration', configuration }],
    });
    expect(() => decodeMessage(append({ term: 3, kind: 3, payload: new Uint8Array(0) }))).toThrow(CorruptBytes);
    expect(() => decodeMessage(append({ term: 3, kind: 0, payload }))).toThrow(/kind 0 is not known/);
    expect(() => decodeMessage(append({ term: 3, kind: 4, payload }))).toThrow(/kind 4 is not known/);
  });

  it('with entries that do not follow is not written', () => {
    const entry = (index: number): { index: number; term: number; kind: 'noop'; payload: Uint8Array } => ({
      index,
      term: 1,
      kind: 'noop',
      payload: new Uint8Array(0),
    });
    const append = (...entries: ReturnType<typeof entry>[]): Message => ({
      type: 'append',
      ...envelope,
      prev: { index: 4, term: 1 },
      entries,
      commit: 0,
      request: 0,
    });
    expect(() => encodeMessage(append(entry(6)))).toThrow(AssertionFailed);
    expect(() => encodeMessage(append(entry(5), entry(7)))).toThrow(AssertionFailed);
    expect(decodeMessage(encodeMessage(append(entry(5), entry(6))))).toMatchObject({
      entries: [{ index: 5 }, { index: 6 }],
    });
  });

  it('keeps no class of its own in a payload', () => {
    const message: Message = {
      type: 'append',
      ...envelope,
      prev: { index: 0, term: 0 },
      entries: [{ index: 1, term: 1, kind: 'command', payload: Uint8Array.of(1, 2) }],
      commit: 0,
      request: 1,
    };
    const bytes = Buffer.from(encodeMessage(message));
    const got = decodeMessage(bytes);
    expect(got.type === 'append' && got.entries[0]?.payload.constructor).toBe(Uint8Array);
    expect(encodeMessage(message).constructor).toBe(Uint8Array);
  });
});

describe('the formats on disk', () => {
  it('are what they were at the first release', () => {
    expect(hex(encodeCommand(release))).toBe('080122090a01611009' + '1a00' + '2800');
    expect(hex(encodeConfiguration(configuration))).toBe('080112260a026e311220' + '61'.repeat(32));
    const { key, value } = encodeStateRecord({ type: 'domain', domain: A, lease });
    expect(hex(key)).toBe('6461');
    expect(hex(value)).toBe(
      `080110a98091b0bdae98031a24${ID_HEX}2201682a060a016b1201763098753880d0c4cfa2344200480250d83658f02e620170`,
    );
    const finished = encodeStateRecord({
      type: 'finished',
      lastRevision: 7 as Revision,
      requests: [
        {
          requestId: ID,
          domain: A,
          finishedAt: 7 as Revision,
          token: 5 as Revision,
          reason: 'released',
          by: '',
          note: '',
          owner: '',
          asked: { ttlMs: 5, holder: 'h', coolDownMs: 6, slots: 1 },
        },
      ],
    });
    expect(hex(finished.key)).toBe('660000000000000007');
    expect(hex(finished.value)).toBe(`080112400a24${ID_HEX}12016118072005280232003a0042004a09080512016818062001`);
    expect(decodeConfiguration(encodeConfiguration(configuration))).toEqual(configuration);
  });
});
