/**
 * The play. Worker A holds a lease and is stopped past its end, B takes over, the leader is killed, C takes over,
 * A wakes and writes what it had computed. Once with a guard at the store, once without. Exit code 0 only if every claim held.
 */
import { mkdtempSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { performance } from 'node:perf_hooks';
import { setTimeout as pause } from 'node:timers/promises';
import { startCluster } from './cluster.js';
import { askStore } from './ask.js';
import { removeAtEnd, startProgram } from './processes.js';

const TTL_MS = 3_000;
/** How long A's computation takes when nobody stops it, in milliseconds: enough for the signal to find it there. */
const COMPUTING_MS = 2_000;

const startedAt = performance.now();
let failed = 0;

/** @param {string} text */
function tell(text) {
  const seconds = ((performance.now() - startedAt) / 1_000).toFixed(1).padStart(5);
  console.log(`${seconds} s  ${text}`);
}

/**
 * @param {boolean} held
 * @param {string} text
 */
function claim(held, text) {
  if (!held) failed++;
  tell(`${held ? '  ok    ' : '  FAILED'}  ${text}`);
}

/** @param {string} text */
function title(text) {
  console.log(`\n${text}\n${'-'.repeat(text.length)}`);
}

const directory = mkdtempSync(join(tmpdir(), 'fencepost-demo-'));
removeAtEnd(directory);

title('Three nodes, a store, and workers that pay from one account');
const store = startProgram('store.js', [join(directory, 'store')]);
const [{ port }, cluster] = await Promise.all([store.next('listening'), startCluster(directory)]);
const url = `http://127.0.0.1:${port}`;
tell(`three nodes run, ${await cluster.leader()} leads; the store listens on ${url}`);

/**
 * The balance of an account; sets it first when one is given.
 * @param {string} key
 * @param {string} [value]
 * @returns {Promise<string>}
 */
async function balance(key, value) {
  const name = encodeURIComponent(key);
  if (value !== undefined) await askStore(url, '/plain/write', { key: name, value });
  return (await askStore(url, `/${name}`)).value;
}

/**
 * @param {'guarded' | 'plain'} mode
 * @param {string} domain
 */
async function play(mode, domain) {
  const guarded = mode === 'guarded';
  await balance(domain, '100');
  const [a, b, c] = ['A', 'B', 'C'].map((name) =>
    startProgram('worker.js', [name, cluster.endpoints.join(','), url, mode, domain]),
  );
  if (a === undefined || b === undefined || c === undefined) throw new Error('no workers');
  /** @param {ReturnType<typeof startProgram>} worker @param {object} order @param {string} answer */
  const order = (worker, order, answer) => {
    const result = worker.next(answer);
    worker.tell(order);
    return result;
  };

  const grantA = await order(a, { do: 'acquire', ttlMs: TTL_MS }, 'acquired');
  tell(`A holds ${domain} under token ${grantA.token}, with a TTL of ${TTL_MS} ms`);
  const wokenA = a.next('paid');
  const computed = await order(a, { do: 'pay', amount: 10, pauseMs: COMPUTING_MS }, 'computed');
  a.child.kill('SIGSTOP');
  tell(
    `A has read ${computed.before}, looked at its lease (held: ${computed.believes}), is about to write ${computed.after} …`,
  );
  tell('… and is stopped (SIGSTOP). It cannot renew, and cannot know that it stands still');

  const grantB = await order(b, { do: 'acquire', ttlMs: TTL_MS }, 'acquired');
  tell(`A's lease ran out, B holds ${domain} under token ${grantB.token}`);
  claim(BigInt(grantB.token) > BigInt(grantA.token), "B's token is greater than A's");
  const paidB = await order(b, { do: 'pay', amount: 30 }, 'paid');
  claim(paidB.outcome.status === 'applied', `B pays 30: ${paidB.outcome.status}, balance ${await balance(domain)}`);

  const killed = await cluster.killLeader();
  const killedAt = performance.now();
  tell(`the leader ${killed} is killed (kill -9)`);
  const still = await cluster.client.get(domain);
  tell(`${await cluster.leader()} leads; it answered ${Math.round(performance.now() - killedAt)} ms after the kill`);
  claim(still.lease?.token === BigInt(grantB.token), "B's lease has survived its leader");
  await order(b, { do: 'release' }, 'released');

  const grantC = await order(c, { do: 'acquire', ttlMs: TTL_MS }, 'acquired');
  tell(`B released; C holds ${domain} under token ${grantC.token}`);
  claim(BigInt(grantC.token) > BigInt(grantB.token), "C's token, from another leader, is greater still");
  const paidC = await order(c, { do: 'pay', amount: 20 }, 'paid');
  claim(paidC.outcome.status === 'applied', `C pays 20: ${paidC.outcome.status}, balance ${await balance(domain)}`);

  tell(`A wakes (SIGCONT) and writes ${computed.after} at once, under token ${grantA.token}`);
  a.child.kill('SIGCONT');
  const paidA = await wokenA;
  const end = await balance(domain);
  if (guarded) {
    claim(
      paidA.outcome.status === 'stale',
      `the store refuses A: ${paidA.outcome.status}, its fence is at ${paidA.outcome.fence}`,
    );
    claim(paidA.outcome.fence === grantC.token, "the fence is C's token");
    claim(end === '50', `the balance is ${end}: 100 − 30 − 20`);
  } else {
    claim(paidA.outcome.status === 'applied', `nobody looks at the token: ${paidA.outcome.status}`);
    claim(end === '90', `the balance is ${end}, not 50: the payments of B and C are gone`);
  }
  claim(paidA.state === 'lost', "now that it runs, A's client knows as well: the lease is lost");
  await order(c, { do: 'release' }, 'released');
  for (const worker of [a, b, c]) worker.end();
  return killed;
}

title('With a guard at the store');
const killed = await play('guarded', 'accounts/guarded');

tell(`${killed} is started again with its data, so that the next leader may be killed too`);
cluster.restart(killed);
await caughtUp(killed);

title('The same without the guard: the lease alone protects nothing');
await play('plain', 'accounts/plain');

/**
 * Waits until a restarted node has applied what the others have.
 * @param {string} name
 */
async function caughtUp(name) {
  for (;;) {
    const nodes = (await cluster.client.status()).flatMap((one) => (one.type === 'answered' ? [one.status] : []));
    const back = nodes.find((status) => status.node === name);
    const level = back !== undefined && nodes.every((status) => back.appliedRevision >= status.appliedRevision);
    if (level && back.leader !== undefined && nodes.length === 3) return;
    await pause(50);
  }
}

console.log(
  failed === 0
    ? '\nEvery claim held. A lease keeps honest workers apart; the token, compared at the resource, keeps the data right.'
    : `\n${failed} claims did not hold.`,
);
await cluster.client.close();
process.exit(failed === 0 ? 0 : 1);
