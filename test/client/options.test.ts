/** What a caller in plain JavaScript may get wrong: told before anything is sent, with every fault. */
import { describe, expect, it } from 'vitest';
import type { AcquireOptions, ConnectOptions, ObserveOptions } from '../../src/client/options.js';
import { acquireSettings, clientSettings, observeSettings } from '../../src/client/options.js';
import { clientWorld, settle } from './world.js';

const wrong = (message: string): object => ({ code: 'INVALID_OPTIONS', message });
const NONE = [undefined, null, 7, 'text', [], () => 1] as const;

describe('options', () => {
  it.each(NONE)('that are no object: %s', (none) => {
    const shown = typeof none === 'string' ? `"${none}"` : String(none);
    const message = (what: string): string => `${what}: options must be an object, not ${shown}.`;
    expect(() => clientSettings(none as unknown as ConnectOptions)).toThrow(message('connect'));
    expect(() => acquireSettings('d', none as unknown as AcquireOptions)).toThrow(message('acquire'));
    expect(() => observeSettings('', none as unknown as ObserveOptions)).toThrow(message('observe'));
  });

  it('of a client, every fault at once', () => {
    const options = { endpoints: ['a', 'b:1', 'b:1', 'c:0', 5], holder: '', callTimeoutMs: 99.5, transport: 'udp' };
    expect(() => clientSettings(options as unknown as ConnectOptions)).toThrow(
      'connect: ' +
        'endpoints: "a" is no host:port (IPv6 in brackets, port 1 to 65535); endpoints: "b:1" is there twice; ' +
        'endpoints: "c:0" is no host:port (IPv6 in brackets, port 1 to 65535); ' +
        'endpoints: 5 is no host:port (IPv6 in brackets, port 1 to 65535); ' +
        'holder must be well-formed text of 1 to 255 bytes; ' +
        'callTimeoutMs must be an integer from 100 to 3600000, not 99.5; ' +
        'transport must be pipelined or unary, not "udp".',
    );
    for (const endpoints of [[], undefined, 'a:1', Array.from({ length: 101 }, (_, at) => `h:${at + 1}`)]) {
      expect(() => clientSettings({ endpoints } as unknown as ConnectOptions)).toThrow(
        'connect: endpoints must be a list of 1 to 100 addresses.',
      );
    }
  });

  it('of an acquire, every fault at once', () => {
    const options = { ttlMs: 0, waitMs: -1, coolDownMs: 600_001, slots: 1_001, metadata: null, signal: {} };
    expect(() => acquireSettings('a b', options as unknown as AcquireOptions)).toThrow(
      'acquire: domain "a b" must be segments of [A-Za-z0-9._~:@+=-] separated by single slashes; ' +
        'ttlMs must be an integer from 1 to 86400000, not 0; waitMs must be an integer from 0 to 86400000, not -1; ' +
        'coolDownMs must be an integer from 0 to 600000, not 600001; slots must be an integer from 1 to 1000, not 1001; ' +
        'signal must be an AbortSignal; metadata must be an object with text as values, not null.',
    );
  });

  it('a domain that is no text, of slots too', () => {
    for (const slots of [1, 2]) {
      expect(() => acquireSettings(undefined as unknown as string, { slots })).toThrow(
        'acquire: domain undefined must be text.',
      );
    }
  });

  it('metadata: text only, and 4 096 bytes of it', () => {
    const limit = { k: 'x'.repeat(4_095) };
    expect(acquireSettings('d', { metadata: limit }).metadata).toEqual([['k', limit.k]]);
    const bad: readonly [unknown, string][] = [
      [{ k: 'x'.repeat(4_096) }, 'metadata has more than 4096 bytes, keys and values together'],
      [{ k: 5 }, 'metadata must have well-formed text as keys and values'],
      [{ k: '\ud800' }, 'metadata must have well-formed text as keys and values'],
      ['text', 'metadata must be an object with text as values, not "text"'],
      [['text'], 'metadata must be an object with text as values, not text'],
    ];
    for (const [metadata, fault] of bad) {
      expect(() => acquireSettings('d', { metadata } as AcquireOptions)).toThrow(`acquire: ${fault}.`);
    }
  });

  it('of an observation, every fault at once', () => {
    const options = { from: 0n, signal: 'now' };
    expect(() => observeSettings('x'.repeat(256), options as unknown as ObserveOptions)).toThrow(
      'observe: prefix must be well-formed text of at most 255 bytes; from must be a bigint from 1 to 2^53 - 1, not 0; ' +
        'signal must be an AbortSignal.',
    );
  });
});

describe('nothing is sent', () => {
  it.each(['withLease', 'elect'] as const)('when %s is given no function', async (what) => {
    const { client, net } = clientWorld();
    const call = client[what]('d', {}, undefined as never);
    await expect(call).rejects.toMatchObject(
      wrong(`${what}: the last argument must be the function that is called with the lease.`),
    );
    await settle();
    expect(net.of('acquire')).toEqual([]);
  });

  it('when the options of an election are wrong, though they are also those of its campaigns', async () => {
    const { client, net } = clientWorld();
    const call = client.elect('d', { ttlMs: -1, signal: 'now' as never }, () => 1);
    await expect(call).rejects.toMatchObject(
      wrong('acquire: ttlMs must be an integer from 1 to 86400000, not -1; signal must be an AbortSignal.'),
    );
    await settle();
    expect(net.of('acquire')).toEqual([]);
  });
});
