import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { afterEach, describe, expect, it } from 'vitest';

const MAIN = resolve('dist/cli/main.js');

const directories: string[] = [];
const clusters: Dev[] = [];
afterEach(async () => {
  for (const cluster of clusters.splice(0)) await cluster.end('SIGTERM');
  for (const directory of directories.splice(0)) rmSync(directory, { recursive: true });
});

function temporary(): string {
  const directory = mkdtempSync(join(tmpdir(), 'fencepost-start-'));
  directories.push(directory);
  return directory;
}

/** `fencepost dev`, as a user in front of a terminal sees it. */
class Dev {
  readonly #process: ChildProcess;
  readonly #exit: Promise<unknown[]>;
  #out = '';
  #err = '';

  constructor(...args: readonly string[]) {
    this.#process = spawn(process.execPath, [MAIN, 'dev', ...args], { stdio: ['ignore', 'pipe', 'pipe'] });
    this.#exit = once(this.#process, 'close');
    this.#process.stdout?.on('data', (data: Buffer) => (this.#out += data.toString()));
    this.#process.stderr?.on('data', (data: Buffer) => (this.#err += data.toString()));
    clusters.push(this);
  }

  /** Waits until standard output matches; fails with what was said when the process ends before. */
  async says(pattern: RegExp): Promise<RegExpExecArray> {
    for (;;) {
      const match = pattern.exec(this.#out);
      if (match !== null) return match;
      if (this.#process.exitCode !== null)
        throw new Error(`ended without ${String(pattern)}:\n${this.#out}${this.#err}`);
      await Promise.race([once(this.#process.stdout ?? this.#process, 'data'), this.#exit]);
    }
  }

  /** Sends a signal and waits for the end. */
  async end(signal: 'SIGINT' | 'SIGTERM'): Promise<{ readonly code: number | null; readonly out: string }> {
    this.#process.kill(signal);
    await this.#exit;
    return { code: this.#process.exitCode, out: this.#out };
  }
}

/** Runs a command to its end. */
function fencepost(args: readonly string[], environment: Readonly<Record<string, string>> = {}) {
  return new Promise<{ readonly code: number; readonly out: string; readonly err: string }>((done) => {
    const child = execFile(
      process.execPath,
      [MAIN, ...args],
      { env: { ...process.env, ...environment } },
      (_error, out, err) => {
        done({ code: child.exitCode ?? -1, out, err });
      },
    );
  });
}

/** The endpoints that the cluster printed. */
async function endpointsOf(dev: Dev): Promise<string> {
  const [, endpoints = ''] = await dev.says(/^clients {2,}(\S+)$/m);
  await dev.says(/Try in another terminal/);
  return endpoints;
}

interface Granted {
  readonly outcome: string;
  readonly lease: { readonly token: string };
}

describe('fencepost dev', () => {
  it('runs three nodes, says what to try, stops at Ctrl-C, and a second run finds the data', async () => {
    const data = temporary();
    const first = new Dev('--data-dir', data);
    const endpoints = await endpointsOf(first);
    const acquire = ['acquire', 'orders/eu', '--ttl-ms', '600000', '--json', '--endpoints', endpoints];
    const granted = await fencepost(acquire);
    expect(granted).toMatchObject({ code: 0, err: '' });
    const { token } = (JSON.parse(granted.out) as Granted).lease;

    const ended = await first.end('SIGINT');
    expect(ended.code).toBe(0);
    expect(ended.out.match(/^n[123] {2,}process \d+$/gm)).toHaveLength(3);
    expect(ended.out).toContain(
      `the data stays, and the next run goes on with it. To begin anew, delete ${data} after`,
    );
    expect(ended.out.match(/ended \(exit code 0\)/g)).toHaveLength(3);

    const second = new Dev('--data-dir', data);
    expect(await endpointsOf(second)).toBe(endpoints);
    expect(await fencepost(acquire)).toMatchObject({ code: 1 });
    const release = await fencepost(['release', 'orders/eu', token, '--endpoints', endpoints]);
    expect(release.code).toBe(0);
    const again = await fencepost(acquire);
    expect(BigInt((JSON.parse(again.out) as Granted).lease.token)).toBeGreaterThan(BigInt(token));
    const status = await fencepost(['status', '--json'], { FENCEPOST_ENDPOINTS: endpoints });
    expect(status.code).toBe(0);
    expect(JSON.parse(status.out)).toMatchObject({
      cluster: 'dev',
      nodes: [{ node: 'n1' }, { node: 'n2' }, { node: 'n3' }],
    });
  });

  it('runs one node, and throws its data away', async () => {
    const dev = new Dev('--nodes', '1');
    const endpoints = await endpointsOf(dev);
    expect(endpoints.split(',')).toHaveLength(1);
    expect((await fencepost(['acquire', 'a', '--endpoints', endpoints])).code).toBe(0);
    const [, data = ''] = await dev.says(/^data of n1 {2,}(\S+)$/m);
    expect(readFileSync(join(data, '..', 'config', 'n1.json'), 'utf8')).toContain('"nodeId": "n1"');
    await dev.says(/the data is thrown away then/);
    await dev.end('SIGTERM');
    expect(() => readFileSync(join(data, '..', 'config', 'n1.json'))).toThrow('ENOENT');
  });

  it('tells how to start a node again that was killed', async () => {
    const data = temporary();
    const dev = new Dev('--data-dir', data);
    await endpointsOf(dev);
    const [, node = '', pid = ''] = await dev.says(/^(n2) {2,}process (\d+)$/m);
    process.kill(Number(pid), 'SIGKILL');
    await dev.says(
      new RegExp(`^${node} {2}ended \\(SIGKILL\\); to start it again: npx fencepost start --config ${data}`, 'm'),
    );
  });

  it('names every port that is taken in one message, exit code 2', async () => {
    const data = temporary();
    const first = new Dev('--nodes', '1', '--data-dir', data);
    const endpoints = await endpointsOf(first);
    const second = await fencepost(['dev', '--nodes', '1', '--data-dir', data]);
    expect(second.code).toBe(2);
    expect(second.err).toContain('2 faults:');
    expect(second.err).toContain(`  - ${endpoints} is in use`);
  });

  it('does not mix a cluster of three with one of one', async () => {
    const data = temporary();
    const dev = new Dev('--nodes', '1', '--data-dir', data);
    await endpointsOf(dev);
    const other = await fencepost(['dev', '--nodes', '3', '--data-dir', data]);
    expect(other.code).toBe(2);
    expect(other.err).toContain('give --nodes 1');
  });
});

describe('fencepost start', () => {
  it('reports every fault of file, environment and flags at once, exit code 2', async () => {
    const file = join(temporary(), 'node.json');
    writeFileSync(file, JSON.stringify({ cluster: 'c', nodeId: 'n1', port: 7101 }));
    const { code, out, err } = await fencepost(['start', '--config', file, '--bogus', '--tick-ms', 'fast'], {
      FENCEPOST_FORM: 'perhaps',
    });
    expect({ code, out }).toEqual({ code: 2, out: '' });
    for (const text of [
      'there is no flag --bogus',
      'no setting is called port',
      'dataDir is missing',
      'members is missing',
      'FENCEPOST_FORM: form must be true or false',
      '--tick-ms: tickMs must be a whole number',
    ])
      expect(err).toContain(text);
    expect(err).toContain('6 faults:');
  });

  it('reports both listeners when both ports are taken, exit code 2', async () => {
    const servers = await Promise.all([taken(), taken()]);
    const [client, peer] = servers.map(({ address }) => address);
    const { code, err } = await fencepost([
      ...['start', '--cluster', 'c', '--node-id', 'n1', '--data-dir', join(temporary(), 'n1'), '--form'],
      ...['--client-address', client ?? '', '--peer-address', peer ?? '', '--members', `n1=${peer ?? ''}`],
    ]);
    for (const { close } of servers) await close();
    expect(code).toBe(2);
    expect(err).toContain(client);
    expect(err).toContain(peer);
    expect(err).toContain('2 faults:');
  });
});

/** A port on loopback that somebody listens on. */
async function taken() {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const address = server.address();
  const port = typeof address === 'object' && address !== null ? address.port : 0;
  return {
    address: `127.0.0.1:${port}`,
    close: async () => {
      server.close();
      await once(server, 'close');
    },
  };
}
