/** `fencepost run` as it is used: the built command, a real node, real commands. */
import { randomUUID } from 'node:crypto';
import { type ChildProcess, spawn } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import type { Domain, RequestId } from '../../src/base/ids.js';
import type { LeaseView } from '../../src/base/api.js';
import { ZERO_REVISION } from '../../src/base/revision.js';
import { freePorts, ProcessCluster, type ProcessNode, until } from './cluster.js';

const MAIN = resolve(import.meta.dirname, '../../dist/cli/main.js');
/** Notices a loss after a third of it at the latest; the node allows three times its election time-out. */
const TTL = '--ttl-ms 1500';

let cluster: ProcessCluster;
let node: ProcessNode;
let folder = '';
let domain = '' as Domain;
let domains = 0;

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'fencepost-run-'));
  cluster = await ProcessCluster.started({
    nodes: 1,
    config: { heartbeatMs: 50, electionMinMs: 200, electionMaxMs: 400 },
  });
  node = await cluster.untilLeader();
});
afterAll(async () => {
  await cluster[Symbol.asyncDispose]();
  rmSync(folder, { recursive: true, force: true });
});
beforeEach(() => {
  domain = `jobs/${++domains}` as Domain;
});

interface Run {
  readonly child: ChildProcess;
  readonly code: Promise<number | string>;
  out: string;
  err: string;
}

/** `fencepost run <flags> <domain> -- <command>`, with $DIR for what a script writes. */
function start(flags: string, ...command: string[]): Run {
  const words = ['run', ...flags.split(' ').filter((word) => word !== ''), domain, '--', ...command];
  const child = spawn(process.execPath, [MAIN, ...words], {
    stdio: ['ignore', 'pipe', 'pipe'],
    env: { ...process.env, FENCEPOST_ENDPOINTS: node.clientAddress, DIR: join(folder, String(domains)) },
  });
  const run: Run = {
    child,
    out: '',
    err: '',
    code: new Promise((done) => {
      child.once('exit', (code, signal) => {
        done(code ?? signal ?? 'unknown');
      });
    }),
  };
  child.stdout.setEncoding('utf8').on('data', (text: string) => (run.out += text));
  child.stderr.setEncoding('utf8').on('data', (text: string) => (run.err += text));
  return run;
}

const sh = (flags: string, script: string): Run => start(flags, 'sh', '-c', `mkdir -p "$DIR"; ${script}`);

/** What a script wrote, once it has. */
async function file(name: string): Promise<string> {
  const path = join(folder, String(domains), name);
  await until(path, () => existsSync(path) && readFileSync(path, 'utf8') !== '');
  return readFileSync(path, 'utf8').trim();
}

async function held(): Promise<LeaseView | undefined> {
  return (await cluster.call(node, { type: 'get', domain, freshness: 'linearizable' })).answer.lease;
}

/** Somebody else gets the domain now. */
async function take(): Promise<void> {
  const { answer } = await cluster.call(node, {
    type: 'acquire',
    domain,
    requestId: randomUUID() as string as RequestId,
    holder: 'somebody else',
    ttlMs: 60_000,
    waitMs: 0,
    metadata: [],
    coolDownMs: 0,
    slots: 1,
    seenRevision: ZERO_REVISION,
  });
  expect(answer.outcome.type).toBe('granted');
}

async function forceRelease(): Promise<void> {
  const lease = await held();
  if (lease === undefined) throw new Error('nobody holds it');
  await cluster.call(node, { type: 'forceRelease', domain, token: lease.token, note: 'stuck for an hour' });
}

const WAITS = 'echo $$ > "$DIR/pid"; while :; do sleep 0.02; done';

describe('a command that ends by itself', () => {
  it('gets domain and token, and gives its exit code; the domain is free then', async () => {
    const run = sh('--holder worker-a', 'echo "$FENCING_DOMAIN $FENCING_TOKEN $FENCING_CLUSTER"; exit 7');
    expect(await run.code).toBe(7);
    expect(run.out).toMatch(new RegExp(`^${domain} \\d{16} test\\n$`));
    expect(run.err).toBe('');
    await take();
  });

  it('keeps its lease past the TTL, and the holder and metadata that were asked for', async () => {
    const run = sh(`${TTL} --holder worker-a --meta app=x`, 'until [ -e "$DIR/stop" ]; do sleep 0.02; done');
    await until('a grant', async () => (await held()) !== undefined);
    const lease = await held();
    expect(lease).toMatchObject({ holder: 'worker-a', metadata: [['app', 'x']], ttlMs: 1_500 });
    const granted = Date.now();
    await until('two TTLs', () => Date.now() - granted > 3_000);
    expect(await held()).toEqual(lease);
    expect(run.child.kill('SIGTERM')).toBe(true);
    expect(await run.code).toBe(143);
  });

  it('may have flags of its own, also those of fencepost', async () => {
    const run = start('', 'sh', '-c', 'echo "$@"', 'name', '--json', '--help', '--', '-x');
    expect(await run.code).toBe(0);
    expect(run.out).toBe('--json --help -- -x\n');
  });

  it('names the slot that it was granted', async () => {
    const run = sh('--slots 2', 'echo "$FENCING_DOMAIN"');
    expect(await run.code).toBe(0);
    expect(run.out).toBe(`${domain}#0\n`);
  });
});

describe('exit codes of its own', () => {
  it('123 when another holds the domain', async () => {
    await take();
    const run = sh('', 'exit 0');
    expect(await run.code).toBe(123);
    expect(run.err).toContain('was not granted: the domain is held by the lease below');
    expect(run.err).toContain('held by somebody else, token 1');
  });

  it('123 when the wait is over', async () => {
    await take();
    const run = sh('--wait-ms 1500', 'exit 0');
    expect(await run.code).toBe(123);
    expect(run.err).toContain('the domain was held for as long as --wait-ms says');
  });

  it('125 when no node answers', async () => {
    const [port = 0] = await freePorts(1);
    const run = sh(`--endpoints 127.0.0.1:${port} --timeout-ms 500`, 'exit 0');
    expect(await run.code).toBe(125);
    expect(run.err).toContain('UNREACHABLE: run:');
  });

  it('126 and 127 when the command cannot be run; the lease is given back', async () => {
    const missing = start('', './no-such-command');
    expect(await missing.code).toBe(127);
    expect(missing.err).toContain('./no-such-command was not found');
    const directory = start('', '/');
    expect(await directory.code).toBe(126);
    await take();
  });

  it('2 when the cluster does not allow what was asked for', async () => {
    const run = sh('--ttl-ms 500', 'exit 0');
    expect(await run.code).toBe(2);
    expect(run.err).toContain('INVALID_REQUEST');
  });
});

describe('a lost lease', () => {
  it('ends the command by SIGTERM when an operator ended the lease, and says who and why', async () => {
    const run = sh(TTL, `trap 'exit 0' TERM; ${WAITS}`);
    await file('pid');
    await forceRelease();
    expect(await run.code).toBe(124);
    expect(run.err).toContain('ended by an operator (addr:127.0.0.1: stuck for an hour). The command gets SIGTERM');
  });

  it('kills a command that ignores the signal, and what it started', async () => {
    const inner = 'trap "" TERM; echo $$ > "$DIR/inner"; while :; do sleep 0.02; done';
    const run = sh(`${TTL} --kill-after-ms 100`, `sh -c '${inner}' & trap '' TERM; ${WAITS}`);
    const pids = [Number(await file('pid')), Number(await file('inner'))];
    await forceRelease();
    expect(await run.code).toBe(124);
    for (const pid of pids) await until(`the end of ${pid}`, () => !exists(pid));
  });

  it('stops the command while the cluster is silent, before it could be granted to another', async () => {
    const run = sh(TTL, `trap 'echo yes > "$DIR/stopped"; exit 0' TERM; ${WAITS}`);
    await file('pid');
    cluster.signal(node, 'SIGSTOP');
    try {
      expect(await file('stopped')).toBe('yes');
    } finally {
      cluster.signal(node, 'SIGCONT');
    }
    expect(await run.code).toBe(124);
    expect(run.err).toContain('The lease is nearly lost: no renewal was confirmed');
  });
});

describe('signals', () => {
  it.each(['SIGINT', 'SIGHUP', 'SIGQUIT'] as const)('%s goes to the command, whose end counts', async (name) => {
    const run = sh('', `trap 'exit 9' ${name.slice(3)}; ${WAITS}`);
    await file('pid');
    run.child.kill(name);
    expect(await run.code).toBe(9);
    await take();
  });

  it('128 plus its number while it waits for the lease, which it does not get any more', async () => {
    await take();
    const run = sh('--wait-ms 60000', 'exit 0');
    await until('a place in the queue', async () => {
      return (await cluster.call(node, { type: 'get', domain, freshness: 'linearizable' })).answer.queueLength === 1;
    });
    run.child.kill('SIGINT');
    expect(await run.code).toBe(130);
    expect((await cluster.call(node, { type: 'get', domain, freshness: 'linearizable' })).answer.queueLength).toBe(0);
  });

  it('Ctrl-Z stops nobody', async () => {
    const run = sh('', 'trap "exit 3" TERM; kill -TSTP $PPID; ' + WAITS);
    await file('pid');
    run.child.kill('SIGTERM');
    expect(await run.code).toBe(3);
  });

  it('a reader of its messages that went away does not end it', async () => {
    const run = sh(TTL, `trap 'exit 0' TERM; ${WAITS}`);
    await file('pid');
    run.child.stderr?.destroy();
    await forceRelease();
    expect(await run.code).toBe(124);
  });
});

function exists(pid: number): boolean {
  try {
    return !readFileSync(`/proc/${pid}/stat`, 'latin1').includes(') Z ');
  } catch {
    return false;
  }
}
