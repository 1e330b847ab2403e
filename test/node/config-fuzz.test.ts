/** Configurations made wrong in any way are a configuration within all limits, or a list of faults: nothing else. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { isAbsolute, join } from 'node:path';
import fc from 'fast-check';
import { afterAll, describe, expect, it } from 'vitest';
import { parseAddress } from '../../src/base/address.js';
import { isNodeId } from '../../src/base/ids.js';
import { createRandom } from '../../src/base/random.js';
import { environmentName, FIELD_NAMES } from '../../src/node/config-fields.js';
import type { NodeConfig } from '../../src/node/config.js';
import { loadConfig, type ConfigSources } from '../../src/node/load-config.js';
import { UsageFaults } from '../../src/node/usage-faults.js';
import { blindly } from '../wire/mutations.js';

const directory = mkdtempSync(join(tmpdir(), 'fencepost-config-fuzz-'));
afterAll(() => {
  rmSync(directory, { recursive: true });
});

const GOOD: Readonly<Record<string, unknown>> = {
  cluster: 'orders',
  nodeId: 'n1',
  dataDir: 'data/n1',
  members: [
    { nodeId: 'n1', peerAddress: '127.0.0.1:7201' },
    { nodeId: 'n2', peerAddress: '[::1]:7202' },
  ],
  floor: '1796000000000041',
  holdMs: 1_000,
  insecure: true,
  tickMs: 10,
  prefixQuotas: [{ prefix: 'orders/', leases: 10, waiters: 0 }],
};

/** Numbers and texts at the edges of what a setting may be. */
const edge = fc.constantFrom<unknown>(
  ...[10, 50, 1_000, 15_000, 0, -1, 1, 1.5, 60_000, 60_001, 86_400_001, 2 ** 31, 2 ** 53 - 1, 2 ** 53, 1e308, -0],
  ...[
    '',
    ' ',
    '0',
    '1',
    'true',
    'false',
    'NaN',
    '1e3',
    '0x10',
    '9'.repeat(400),
    '9007199254740992',
    '\u0000',
    '\ud800',
  ],
  ...['127.0.0.1:0', '127.0.0.1:65536', ':7101', '[::1]:7101', '[::1]7101', '::1:7101', 'host:07101', 'x'.repeat(300)],
  ...[
    'n1=127.0.0.1:7201',
    'n1=a:1,n1=a:1',
    'a=1/1',
    'a=1/1,a=2/2',
    '=1/1',
    '=,=',
    ',',
    '__proto__',
    'constructor',
    'info',
  ],
  ...[null, true, false, [], {}, [[]], [null], { nodeId: 'n1' }],
  ...[JSON.parse('{"__proto__": {"polluted": 1}, "nodeId": "n1", "peerAddress": "a:1"}')],
);
const value = fc.oneof(edge, fc.jsonValue());
const name = fc.oneof(
  { arbitrary: fc.constantFrom<string>(...FIELD_NAMES), weight: 8 },
  { arbitrary: fc.constantFrom('__proto__', 'constructor', 'toString', 'CLUSTER', ''), weight: 1 },
);
const text = fc.oneof(edge.map(String), fc.string());

let files = 0;
function file(content: string | Uint8Array): string {
  const path = join(directory, `${files++}.json`);
  writeFileSync(path, content);
  return path;
}

/** The file as JSON has it: with `__proto__` as a key like any other. */
function json(pairs: readonly (readonly [string, unknown])[]): string {
  return `{${pairs.map(([key, content]) => `${JSON.stringify(key)}: ${JSON.stringify(content)}`).join(', ')}}`;
}

function judge(sources: ConfigSources): 'faults' | 'good' {
  let config: NodeConfig;
  try {
    config = loadConfig(sources);
  } catch (error) {
    expect(error).toBeInstanceOf(UsageFaults);
    const { faults } = error as UsageFaults;
    expect(faults.length).toBeGreaterThan(0);
    for (const fault of faults) expect(fault).not.toBe('');
    return 'faults';
  }
  judgeGood(config);
  return 'good';
}

/** The limits of `config.ts`, said once more. */
function judgeGood(config: NodeConfig): void {
  expect(Object.keys(config).sort()).toEqual([...FIELD_NAMES].sort());
  expect(config.cluster).toMatch(/^[A-Za-z0-9._-]{1,63}$/);
  expect(isAbsolute(config.dataDir)).toBe(true);
  expect(config.members.length >= 1 && config.members.length <= 7).toBe(true);
  for (const member of config.members) {
    expect(Object.keys(member).sort()).toEqual(['nodeId', 'peerAddress']);
    expect(Object.getPrototypeOf(member)).toBe(Object.prototype);
    expect(isNodeId(member.nodeId) && parseAddress(member.peerAddress) !== undefined).toBe(true);
  }
  expect(new Set(config.members.map(({ nodeId }) => nodeId)).size).toBe(config.members.length);
  expect(config.members.map(({ nodeId }) => nodeId)).toContain(config.nodeId);
  const { tickMs, heartbeatMs, electionMinMs, electionMaxMs, defaultTtlMs, holdMs, floor, diskFloorBytes } = config;
  for (const number of [tickMs, heartbeatMs, electionMinMs, electionMaxMs, defaultTtlMs]) {
    expect(Number.isSafeInteger(number) && number >= 1 && number <= 86_400_000).toBe(true);
  }
  for (const number of [holdMs, floor, diskFloorBytes]) expect(Number.isSafeInteger(number) && number >= 0).toBe(true);
  expect([heartbeatMs % tickMs, electionMinMs % tickMs, electionMaxMs % tickMs]).toEqual([0, 0, 0]);
  expect(electionMinMs >= 3 * heartbeatMs && electionMaxMs >= 1.5 * electionMinMs).toBe(true);
  expect(defaultTtlMs >= 3 * electionMaxMs).toBe(true);
  expect([typeof config.form, typeof config.insecure]).toEqual(['boolean', 'boolean']);
  expect(['info', 'warn', 'error']).toContain(config.logLevel);
  const { queueLimit, leasesPerPrincipal, waitersPerPrincipal, prefixQuotas } = config;
  const quotas = prefixQuotas.flatMap(({ leases, waiters }) => [leases, waiters]);
  for (const number of [queueLimit, leasesPerPrincipal, waitersPerPrincipal, ...quotas]) {
    expect(Number.isSafeInteger(number) && number >= 0 && number <= 1_000_000_000).toBe(true);
  }
  expect(new Set(prefixQuotas.map(({ prefix }) => prefix)).size).toBe(prefixQuotas.length);
  expect(Object.isFrozen(config) && Object.isFrozen(config.members)).toBe(true);
}

function counted(count: Record<'faults' | 'good', number>): void {
  expect(count.faults).toBeGreaterThan(20);
  expect(count.good).toBeGreaterThan(5);
  expect(({} as Record<string, unknown>)['polluted']).toBeUndefined();
  expect(Object.keys(Object.prototype)).toEqual([]);
}

describe('a configuration', () => {
  it('is good before anything is made wrong', () => {
    expect(judge({ file: file(json(Object.entries(GOOD))), environment: {}, flags: {} })).toBe('good');
  });

  it('with other values in its file', () => {
    const count = { faults: 0, good: 0 };
    fc.assert(
      fc.property(fc.array(fc.tuple(name, value), { minLength: 1, maxLength: 2 }), (changes) => {
        const path = file(json([...Object.entries(GOOD), ...changes]));
        count[judge({ file: path, environment: {}, flags: {} })]++;
      }),
      { numRuns: 400 },
    );
    counted(count);
  });

  it('with damaged bytes in its file', () => {
    const bytes = Buffer.from(json(Object.entries(GOOD)));
    const count = { faults: 0, good: 0 };
    fc.assert(
      fc.property(fc.integer({ min: 0, max: 2 ** 32 - 1 }), (seed) => {
        const path = file(blindly(bytes, bytes, createRandom(seed)));
        count[judge({ file: path, environment: {}, flags: {} })]++;
      }),
      { numRuns: 400 },
    );
    counted(count);
  });

  it('with any texts in the environment and in flags', () => {
    const path = file(json(Object.entries(GOOD)));
    const variables = fc.dictionary(fc.constantFrom(...FIELD_NAMES.map(environmentName), '__proto__'), text, {
      maxKeys: 2,
    });
    const flags = fc.dictionary(fc.constantFrom(...FIELD_NAMES, '__proto__'), fc.oneof(text, fc.boolean()), {
      maxKeys: 2,
    });
    const count = { faults: 0, good: 0 };
    fc.assert(
      fc.property(variables, flags, (environment, given) => {
        count[judge({ file: path, environment, flags: given })]++;
      }),
      { numRuns: 400 },
    );
    counted(count);
  });

  it('that is any JSON, or nested deeply', () => {
    const nested = '['.repeat(100_000) + ']'.repeat(100_000);
    const texts = [nested, `{"members": ${nested}}`, '{"a":'.repeat(100_000) + '1' + '}'.repeat(100_000)];
    for (const content of texts) {
      expect(judge({ file: file(content), environment: {}, flags: {} })).toBe('faults');
    }
    fc.assert(
      fc.property(fc.json(), (content) => {
        expect(judge({ file: file(content), environment: {}, flags: {} })).toBe('faults');
      }),
      { numRuns: 100 },
    );
  });
});
