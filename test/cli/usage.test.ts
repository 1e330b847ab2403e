import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import type { Domain } from '../../src/base/ids.js';
import { COMMANDS } from '../../src/cli/program.js';
import { errorWith } from '../../src/client/errors.js';
import { NOTHING, run } from './kit.js';
import { domainAnswer } from '../support/answers.js';

describe('usage', () => {
  it('reports every fault of a line in one message, and calls nobody', async () => {
    const result = await run(
      'acquire a//b --ttl-ms 0 --meta x --bogus --holder --request-id 7 --endpoints nowhere,1.2.3.4:5',
    );
    expect(result.code).toBe(2);
    expect(result.calls).toEqual([]);
    for (const text of [
      'there is no flag --bogus',
      'domain "a//b" must be segments',
      '--holder needs a value',
      '--meta must be KEY=VALUE, not "x"',
      '--request-id must be a UUID, not "7"',
      '--ttl-ms must be a whole number from 1 to 86400000, not "0"',
      '--endpoints must be HOST:PORT,… with ports from 1 to 65535; "nowhere" is not one',
    ])
      expect(result.err).toContain(`  - ${text}`);
    expect(result.err).toContain('cannot be run (fencepost acquire --help), 7 faults:');
    expect(result.err.split('\n')).toHaveLength(8);
  });

  it.each([
    ['renew orders/eu', ['the token is missing']],
    ['release', ['the domain is missing', 'the token is missing']],
    ['verify a 12x', ['the token must be a positive number']],
    ['verify a 9999999999999999', ['the token must be a positive number']],
    ['get a b', ['nothing is expected at "b"']],
    ['status extra', ['nothing is expected at "extra"']],
    ['get a --timeout-ms 0', ['--timeout-ms must be a whole number from 1']],
    ['acquire a --meta', ['--meta needs a value']],
    ['acquire a --meta k=1 --meta k=2', ['--meta names k twice']],
    ['acquire a --seen-revision 5', ['--seen-revision goes with --request-id']],
    ['force-release a 5', ['--note must have 1 to 500 bytes; this one has 0']],
    ['limits set', ['set needs at least one of --queue-limit, --leases-per-principal, --waiters-per-principal']],
    ['limits --queue-limit 5', ['--queue-limit needs set']],
    [
      'limits change --queue-limit x --leases-per-principal 0 --prefix-quotas a=1/1,a=2/2,b,/c=1/1000000001',
      [
        'limits takes set or nothing, not "change"',
        '--queue-limit must be a whole number from 0 to 1000000000, not "x"',
        '--leases-per-principal must be a whole number from 1 to 1000000000, not "0"',
        '--prefix-quotas must be PREFIX=LEASES/WAITERS,… or none; "b" is not one',
        '--prefix-quotas[2].prefix must be the beginning of a domain',
        '--prefix-quotas[2].waiters is 1000000001',
        '--prefix-quotas names a twice',
      ],
    ],
    ['run', ['the domain is missing', 'the command is missing']],
    ['run a b', ['the command is missing']],
    ['run a b -- c', ['nothing is expected at "b"']],
    ['run -- a b', ['the domain is missing']],
    ['run a --bogus -- -- --bogus', ['there is no flag --bogus']],
    [
      'run a//b --signal SIGFOO --kill-after-ms 6000 --bogus -- x --bogus',
      [
        'there is no flag --bogus',
        'domain "a//b" must be segments',
        '--signal must be the name of a signal, as SIGTERM, not "SIGFOO"',
        '--kill-after-ms must be at most a third of the TTL, 5000, not 6000',
      ],
    ],
    ['transfer-leadership n/1', ['node "n/1" must be']],
    [
      'fence',
      ['what to do is missing', '--at is missing: where the fences are, as postgres://USER@HOST:PORT/DATABASE'],
    ],
    ['fence shwo --at', ['fence takes migrate, show, reset, doctor, not "shwo"', '--at needs a value']],
    ['fence show a b --at sqlite:x', ['nothing is expected at "b"']],
    [
      'fence show --at oracle:x',
      [
        '--at must be one of postgres://USER@HOST:PORT/DATABASE, sqlite:FILE, redis://HOST:PORT/DATABASE, mysql://USER@HOST:PORT/DATABASE, not the scheme oracle',
      ],
    ],
    ['fence doctor --at x.db', ['not an address without a scheme']],
    ['fence doctor --at sqlite:', ['--at names no file']],
    ['fence doctor --at sqlite://x', ['--at names a host']],
    ['fence doctor --at postgres://a:b:c@d:e', ['--at is no URL']],
    ['fence doctor --at redis://a:b:c@d:e', ['--at is no URL']],
    ['fence doctor --at redis:orders', ['--at names no host']],
    ['fence doctor --at mysql://a:b:c@d:e/f', ['--at is no URL']],
    ['fence doctor --at mariadb:orders', ['--at names no host']],
    ['fence doctor --at mysql://root@a/', ['--at names no database']],
    ['fence doctor --at redis://a/orders', ['--at names a database that is no number']],
    [
      'fence reset --at sqlite:x --print --endpoints a:1',
      [
        '--print goes with migrate',
        '--endpoints goes with doctor',
        'the domain is missing',
        'the token is missing',
        '--note must say why, in 1 to 500 bytes; this one has 0',
      ],
    ],
    ['dev --nodes 2 --config-dir x', ['--nodes must be 1 or 3', '--config-dir stands alone']],
    [
      'start --bogus --tick-ms --cluster a/b',
      [
        'no flag --bogus',
        'cluster must be',
        'nodeId is missing',
        'dataDir is missing',
        'members is missing',
        '--tick-ms needs a value',
      ],
    ],
  ])('%s', async (line, faults) => {
    const result = await run(line);
    expect(result.code).toBe(2);
    expect(result.err.split('\n').slice(1)).toEqual(faults.map((fault) => expect.stringContaining(fault) as string));
    expect(result.calls).toEqual([]);
  });

  it('knows no other command, and no flag before one', async () => {
    expect(await run('aquire x')).toMatchObject({
      code: 2,
      err: expect.stringContaining('Did you mean acquire') as string,
    });
    expect(await run('--bogus')).toMatchObject({ code: 2 });
    expect(await run('')).toMatchObject({ code: 2, err: expect.stringContaining('Commands:') as string });
  });

  it('names the flag that was meant', async () => {
    const { err } = await run('acquire a --ttl-sm 5 --endpoint a:1 --xyz');
    expect(err).toContain('there is no flag --ttl-sm; did you mean --ttl-ms?');
    expect(err).toContain('there is no flag --endpoint; did you mean --endpoints?');
    expect(err).toMatch(/there is no flag --xyz$/m);
  });

  it('--version is that of the package', async () => {
    const { version } = JSON.parse(readFileSync('package.json', 'utf8')) as { version: string };
    expect(await run('--version')).toMatchObject({ code: 0, out: version });
  });

  it('the exit codes of a command do not contradict the general ones', async () => {
    for (const { name } of COMMANDS) expect((await run(`${name} --help`)).out.match(/Exit codes/g)).toHaveLength(1);
    expect((await run('get --help')).out).toContain('0 answered, whether the domain is held or free');
    expect((await run('start --help')).out).toContain('1 the data directory or the other members refuse it');
  });

  it('--json behind -- belongs to the command that is run', async () => {
    const result = await run('get a -- --json');
    expect(result).toMatchObject({ code: 2, out: '' });
    expect((await run('run a --timeout-ms 100 --endpoints 127.0.0.1:1 -- x --json')).out).toBe('');
  });

  it('reads what stands behind -- as an operand', async () => {
    const result = await run('get -- -x', () => domainAnswer('-x' as Domain));
    expect(result.calls).toEqual([{ type: 'get', domain: '-x', freshness: 'linearizable' }]);
  });

  it.each(COMMANDS.map(({ name }) => name))('%s --help shows flags and exit codes', async (name) => {
    const result = await run(`${name} --help`);
    expect(result.code).toBe(0);
    expect(result.out).toContain('Exit codes:');
    expect(result.out).toContain(`Usage: fencepost ${name}`);
  });

  it('lists every command in --help', async () => {
    const { out } = await run('--help');
    for (const { name } of COMMANDS) expect(out).toContain(`  ${name}`);
  });
});

describe('endpoints', () => {
  it.each([
    ['the local cluster by default', '', {}, ['127.0.0.1:7101', '127.0.0.1:7102', '127.0.0.1:7103']],
    ['the variable', '', { FENCEPOST_ENDPOINTS: 'a:1, b:2,a:1' }, ['a:1', 'b:2']],
    ['the flag before the variable', '--endpoints c:3', { FENCEPOST_ENDPOINTS: 'a:1' }, ['c:3']],
  ])('%s', async (_, flags, environment, expected) => {
    const result = await run(`get a ${flags}`, NOTHING, { environment });
    expect(result.connects).toEqual([[expected, 10_000]]);
    expect(result.closed).toBe(1);
  });

  it('gives the time-out to the transport', async () => {
    expect((await run('get a --timeout-ms 250')).connects[0]?.[1]).toBe(250);
  });
});

describe('errors of the cluster', () => {
  it('go to standard error with their code, exit code 3', async () => {
    expect(await run('get a')).toMatchObject({ code: 3, out: '', err: 'UNREACHABLE: get: nobody there' });
  });

  it('are a document with --json', async () => {
    const result = await run('get a --json');
    expect(result).toMatchObject({ code: 3, err: '' });
    expect(JSON.parse(result.out)).toEqual({
      error: { code: 'UNREACHABLE', message: 'nobody there', outcome: 'unknown' },
    });
  });

  it('are faults of usage when the server says so', async () => {
    expect((await run('get a', () => errorWith('INVALID_REQUEST', 'x'))).code).toBe(2);
  });
});
