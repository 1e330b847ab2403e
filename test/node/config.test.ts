import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { environmentName, FIELD_NAMES, FIELDS, flagName } from '../../src/node/config-fields.js';
import { loadConfig, type ConfigSources } from '../../src/node/load-config.js';
import { UsageFaults } from '../../src/node/usage-faults.js';

const directory = mkdtempSync(join(tmpdir(), 'fencepost-config-'));
afterAll(() => {
  rmSync(directory, { recursive: true });
});

const GOOD = {
  cluster: 'orders',
  nodeId: 'n1',
  dataDir: 'data/n1',
  members: [
    { nodeId: 'n1', peerAddress: '127.0.0.1:7201' },
    { nodeId: 'n2', peerAddress: '127.0.0.1:7202' },
  ],
};

let files = 0;
function file(content: unknown): string {
  const path = join(directory, `config-${files++}.json`);
  writeFileSync(path, typeof content === 'string' ? content : JSON.stringify(content));
  return path;
}

function load(sources: Partial<ConfigSources>) {
  return loadConfig({ file: undefined, environment: {}, flags: {}, ...sources });
}

function faultsOf(sources: Partial<ConfigSources>): readonly string[] {
  try {
    load(sources);
  } catch (error) {
    if (error instanceof UsageFaults) return error.faults;
    throw error;
  }
  return [];
}

describe('a good configuration', () => {
  it('has every default', () => {
    expect(load({ file: file(GOOD) })).toEqual({
      ...GOOD,
      dataDir: resolve('data/n1'),
      clientAddress: '127.0.0.1:7101',
      peerAddress: '127.0.0.1:7201',
      form: false,
      floor: 0,
      holdMs: 0,
      insecure: false,
      diskFloorBytes: 536_870_912,
      tickMs: 10,
      heartbeatMs: 100,
      electionMinMs: 500,
      electionMaxMs: 1_000,
      defaultTtlMs: 15_000,
      queueLimit: 1_000,
      leasesPerPrincipal: 1_000_000,
      waitersPerPrincipal: 100_000,
      prefixQuotas: [],
      logLevel: 'info',
      auditGrants: false,
      auditReleases: false,
    });
  });

  it('is frozen to the bottom', () => {
    const config = load({ file: file(GOOD) });
    expect(Object.isFrozen(config)).toBe(true);
    expect(Object.isFrozen(config.members)).toBe(true);
    expect(config.members.every((member) => Object.isFrozen(member))).toBe(true);
  });

  it('takes flags before the environment before the file', () => {
    const path = file({ ...GOOD, holdMs: 1, diskFloorBytes: 1, heartbeatMs: 50 });
    const config = load({
      file: path,
      environment: { FENCEPOST_HOLD_MS: '2', FENCEPOST_DISK_FLOOR_BYTES: '2' },
      flags: { holdMs: '3' },
    });
    expect([config.holdMs, config.diskFloorBytes, config.heartbeatMs]).toEqual([3, 2, 50]);
  });

  it('can come from the environment alone', () => {
    const config = load({
      environment: {
        FENCEPOST_CLUSTER: 'orders',
        FENCEPOST_NODE_ID: 'n2',
        FENCEPOST_DATA_DIR: '/data',
        FENCEPOST_MEMBERS: 'n1=a.example:7201, n2=[::1]:7202',
        FENCEPOST_FORM: 'true',
        FENCEPOST_FLOOR: '1796000000000041',
      },
    });
    expect(config).toMatchObject({
      nodeId: 'n2',
      form: true,
      floor: 1_796_000_000_000_041,
      members: [
        { nodeId: 'n1', peerAddress: 'a.example:7201' },
        { nodeId: 'n2', peerAddress: '[::1]:7202' },
      ],
    });
  });

  it('leaves variables alone that are no settings, such as those that Kubernetes makes up', () => {
    expect(faultsOf({ file: file(GOOD), environment: { FENCEPOST_PORT: 'tcp://10.0.0.1:7101' } })).toEqual([]);
  });

  it('takes quotas as text, whose prefixes may have the same signs', () => {
    const text = 'orders/=1000/50, a=b/c=2/0,gpu=8/0';
    const prefixQuotas = [
      { prefix: 'orders/', leases: 1_000, waiters: 50 },
      { prefix: 'a=b/c', leases: 2, waiters: 0 },
      { prefix: 'gpu', leases: 8, waiters: 0 },
    ];
    const environment = { FENCEPOST_PREFIX_QUOTAS: text, FENCEPOST_QUEUE_LIMIT: '0' };
    expect(load({ file: file(GOOD), environment })).toMatchObject({ prefixQuotas, queueLimit: 0 });
    expect(load({ file: file({ ...GOOD, prefixQuotas }) }).prefixQuotas).toEqual(prefixQuotas);
  });

  it('takes --form as a flag alone', () => {
    expect(load({ file: file(GOOD), flags: { form: true } }).form).toBe(true);
  });
});

describe('faults', () => {
  it('of quotas name each of them', () => {
    const path = file({
      ...GOOD,
      queueLimit: -1,
      leasesPerPrincipal: 0,
      prefixQuotas: [
        { prefix: 'a', leases: 1, waiters: 1 },
        { prefix: '/a', leases: 1.5, waiters: -1, renewals: 3 },
        { prefix: 'a', leases: 1_000_000_001, waiters: 1 },
        { prefix: 'a#', waiters: 1 },
        { prefix: 'a//b', leases: 1, waiters: 1 },
      ],
    });
    const faults = faultsOf({ file: path, environment: { FENCEPOST_WAITERS_PER_PRINCIPAL: 'many' } });
    for (const text of [
      'queueLimit must be a whole number from 0 to 1000000000, not -1',
      'leasesPerPrincipal must be a whole number from 1 to 1000000000, not 0',
      'waitersPerPrincipal must be a whole number',
      'prefixQuotas[1].prefix must be the beginning of a domain',
      'prefixQuotas[1].leases must be a whole number from 0',
      'prefixQuotas[1].waiters must be a whole number from 0',
      'prefixQuotas[1] must be {"prefix": …, "leases": …, "waiters": …} and nothing else',
      'prefixQuotas[2].leases must be a whole number',
      'prefixQuotas[3].prefix must be the beginning of a domain',
      'prefixQuotas[3].leases must be a whole number',
      'prefixQuotas[4].prefix must be the beginning of a domain',
    ])
      expect(faults.filter((fault) => fault.includes(`: ${text}`))).toHaveLength(1);
    const twice = 'a=1/1,b=1/1,a=2/2';
    expect(faultsOf({ file: file(GOOD), flags: { prefixQuotas: twice } })).toEqual(['prefixQuotas names a twice']);
    expect(faultsOf({ file: file(GOOD), flags: { prefixQuotas: 'a=1,b=/1' } })).toHaveLength(2);
    const many = Array.from({ length: 101 }, (_, at) => `a${at}=1/1`).join(',');
    expect(faultsOf({ file: file(GOOD), flags: { prefixQuotas: many } })).toHaveLength(1);
  });

  it('are reported all at once, from file, environment, flags and command line', () => {
    const path = file({
      ...GOOD,
      nodeId: 'bad name',
      clientAddress: '0.0.0.0:7101',
      peerAddress: 'nowhere',
      heartbeat: 100,
      members: [{ nodeId: 'n1', peerAddress: '127.0.0.1:0', zone: 'b' }, { nodeId: 'n1' }],
      floor: 1_796_000_000_000_041,
      electionMaxMs: 600,
    });
    const sources: Partial<ConfigSources> = {
      file: path,
      environment: { FENCEPOST_HOLD_MS: '-1', FENCEPOST_INSECURE: 'maybe', FENCEPOST_LOG_LEVEL: 'loud' },
      flags: { tickMs: true, defaultTtlMs: 'x', cluster: 'a/b' },
      usageFaults: ['there is no flag --bogus'],
    };
    const faults = faultsOf(sources);
    const expected = [
      'there is no flag --bogus',
      `${path}: no setting is called heartbeat`,
      '--cluster: cluster must be 1–63 characters',
      `${path}: nodeId must be 1–63 characters`,
      `${path}: peerAddress must be host:port`,
      `${path}: members[0].peerAddress must be host:port`,
      `${path}: members[0] must be {"nodeId"`,
      `${path}: members[1].peerAddress must be host:port`,
      `${path}: floor must be a revision as text`,
      'FENCEPOST_HOLD_MS: holdMs must be a whole number from 0 to 86400000, not -1',
      'FENCEPOST_INSECURE: insecure must be true or false, not "maybe"',
      '--tick-ms needs a value',
      '--default-ttl-ms: defaultTtlMs must be a whole number from 1 to 86400000, not "x"',
      'FENCEPOST_LOG_LEVEL: logLevel must be info, warn or error, not "loud"',
      'electionMaxMs (600) must be at least 1.5 times electionMinMs (500)',
    ];
    for (const text of expected) expect(faults.filter((fault) => fault.startsWith(text))).toHaveLength(1);
    expect(faults).toHaveLength(expected.length);
    expect(() => load(sources)).toThrow(
      `The configuration cannot be used, ${faults.length} faults:\n  - there is no flag`,
    );
  });

  it('name what is missing and where it can be set', () => {
    expect(faultsOf({})).toEqual(
      ['cluster', 'nodeId', 'dataDir', 'members'].map(
        (name) => expect.stringContaining(`${name} is missing`) as string,
      ),
    );
  });

  it.each([
    ['not JSON', '{', 'is not JSON'],
    ['a list', [], 'must hold one JSON object'],
  ])('are not drowned in missing settings when the file is %s', (_, content, text) => {
    const faults = faultsOf({ file: file(content), flags: { holdMs: 'x' } });
    expect(faults).toHaveLength(2);
    expect(faults[0]).toContain(text);
    expect(faults[1]).toContain('--hold-ms');
  });

  it('name a file that is not there', () => {
    expect(faultsOf({ file: join(directory, 'none.json') })).toEqual([
      expect.stringContaining('none.json cannot be read'),
    ]);
  });

  it.each([
    ['tick and heartbeat', { tickMs: 30 }, ['heartbeatMs (100)', 'electionMinMs (500)', 'electionMaxMs (1000)']],
    ['heartbeat and election', { heartbeatMs: 200 }, ['electionMinMs (500) must be at least three times']],
    ['election and TTL', { electionMaxMs: 6_000 }, ['defaultTtlMs (15000) must be at least three times']],
    ['itself among the members', { nodeId: 'n9' }, ['members must contain this node, n9']],
    ['two listeners', { clientAddress: '127.0.0.1:7201' }, ['clientAddress and peerAddress are both']],
    ['a reachable peer listener', { peerAddress: '10.0.0.1:7201' }, ['peerAddress (10.0.0.1:7201) can be reached']],
    ['a reachable client listener', { clientAddress: '[::]:7101' }, ['clientAddress ([::]:7101) can be reached']],
  ])('compare settings: %s', (_, change, texts) => {
    const faults = faultsOf({ file: file({ ...GOOD, ...change }) });
    expect(faults).toEqual(texts.map((text) => expect.stringContaining(text) as string));
  });

  it('name a member or an address that is there twice', () => {
    const [n1] = GOOD.members;
    expect(faultsOf({ file: file({ ...GOOD, members: [n1, n1] }) })).toEqual([
      'members names n1 twice',
      'members gives the address 127.0.0.1:7201 twice',
    ]);
  });

  it('do not include a listener that others can reach when that is said to be meant', () => {
    expect(faultsOf({ file: file({ ...GOOD, clientAddress: '0.0.0.0:7101', insecure: true }) })).toEqual([]);
  });
});

describe('the shipped files', () => {
  it.each(['node1', 'node2', 'node3'])('cluster/local/%s.json is valid', (name) => {
    expect(faultsOf({ file: `cluster/local/${name}.json` })).toEqual([]);
  });

  it('cluster/README.md lists every setting with its variable, flag and default', () => {
    const readme = readFileSync('cluster/README.md', 'utf8');
    for (const name of FIELD_NAMES) {
      const { fallback } = FIELDS[name];
      const none = name === 'floor' || name === 'prefixQuotas';
      const shown = none ? 'none' : fallback === undefined ? 'required' : JSON.stringify(fallback).replaceAll('"', '');
      const row = readme.split('\n').find((line) => line.startsWith(`| \`${name}\``));
      expect(row, `a row for ${name}`).toBeDefined();
      const cells = (row ?? '').split('|').map((cell) => cell.trim());
      expect(cells.slice(2, 5)).toEqual([`\`${environmentName(name)}\``, `\`${flagName(name)}\``, shown]);
    }
  });
});
