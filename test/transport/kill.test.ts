/** What the other members see when a process is killed: the base of `peerDown` (design 5, S1). */
import { fork } from 'node:child_process';
import type { ChildProcess } from 'node:child_process';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterEach, beforeAll, expect, test } from 'vitest';
import { build } from 'vite';
import type { MemberAddress } from '../../src/replica/types.js';
import { addresses, addressOf, closeAll, closeLater, member, TestNode, track, until } from './harness.js';

const here = dirname(fileURLToPath(import.meta.url));
// Two folders below the root, as `src` and `dist` files are: the proto files are found from there.
const out = join(here, '../../node_modules/.fencepost-test');

beforeAll(async () => {
  await build({
    configFile: false,
    logLevel: 'error',
    build: {
      ssr: join(here, 'child.ts'),
      outDir: out,
      emptyOutDir: false,
      target: 'node20',
      rolldownOptions: { output: { entryFileNames: 'child.mjs' } },
    },
  });
}, 60_000);
afterEach(closeAll);

/** Runs n2 in a process of its own. */
function start(list: readonly MemberAddress[]): ChildProcess {
  const child = fork(join(out, 'child.mjs'), [JSON.stringify(list)], {
    stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
  });
  closeLater({
    close: () => {
      child.kill('SIGKILL');
      return Promise.resolve();
    },
  });
  return child;
}

test('the streams of a killed process end, and then a connect is refused; a stopped one is neither', async () => {
  const list = await addresses('n1', 'n2');
  const n1 = track(await new TestNode('n1', addressOf(list, 'n1'), list).start());
  const n2 = member('n2');
  const child = start(list);
  await until('n2 speaks', () => n1.messages.length > 0);
  await until('n2 is reached', () => n1.lines.some(({ message }) => message === 'connected to a peer'));
  const probe = async (): Promise<string> => {
    const before = n1.all('probed').length;
    n1.transport.perform({ type: 'probe', node: n2.node });
    return (await until('the probe is over', () => n1.all('probed')[before])).outcome;
  };

  child.kill('SIGSTOP');
  expect(await probe()).toBe('other');
  expect(n1.all('streamEnded')).toEqual([]);
  child.kill('SIGCONT');
  const before = n1.messages.length;
  await until('n2 speaks again', () => n1.messages.length > before);
  expect(n1.all('hello').length).toBe(3);

  child.kill('SIGKILL');
  await until('both streams have ended', () => n1.all('streamEnded').length === 2);
  const ended = n1.events.findLastIndex(({ type }) => type === 'streamEnded');
  expect(await probe()).toBe('refused');
  expect(n1.events.slice(ended).some(({ type }) => type === 'message')).toBe(false);
  expect(n1.all('forwarderLost')).toHaveLength(1);

  const boot = n1.all('hello')[0]?.boot;
  start(list);
  const again = await until('n2 is back', () => n1.all('hello').find((hello) => hello.boot !== boot));
  expect(again.directory).toBe(n2.directory);
});
