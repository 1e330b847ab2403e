/**
 * A process that writes to a store until it is killed or a write fails. Says on standard output what it submits (before
 * it does) and what was acknowledged, one line each; ends with exit code 74 when the disk refuses a write.
 *
 *     node writer.mjs <data directory> <seed> <bytes of an entry's payload>
 */
import { writeSync } from 'node:fs';
import process from 'node:process';
import { createRandom, nextInt } from '../../dist/base/random.js';
import { openStore } from '../../dist/storage/open.js';

const [path = '', seed = '1', payloadBytes = '8'] = process.argv.slice(2);
const random = createRandom(Number(seed));
const store = await openStore(path, { cluster: 'test', node: 'a' });
const { hard, snapshot, anchor, genesis, summary } = store.loaded;
const terms = store.loaded.entries.map((entry) => entry.term);
const termAt = (index) => terms[index - anchor.index - 1];
const last = () => anchor.index + terms.length;
let { term } = hard;
let applied = snapshot.index;
let seq = 0;

const say = (line) => writeSync(1, `${line}\n`);

function write() {
  let first = last() + 1;
  const cuts = nextInt(random, 0, 3) === 0 && last() > applied;
  if (cuts) {
    first = nextInt(random, applied + 1, last());
    terms.length = first - anchor.index - 1;
    term++;
  } else if (nextInt(random, 0, 5) === 0) term++;
  const vote = term % 2 === 0 ? genesis.members[1] : undefined;
  const count = nextInt(random, cuts ? 1 : 0, 5);
  const entries = Array.from({ length: count }, (_, i) => {
    const payload = new Uint8Array(Number(payloadBytes)).fill(first + i);
    payload[0] = term;
    return { index: first + i, term, kind: 'command', payload };
  });
  for (const entry of entries) terms.push(entry.term);
  say(`write ${first} ${count} ${term} ${vote?.node ?? '-'}`);
  store.write({ seq: ++seq, hard: { term, vote }, cutFrom: cuts ? first : undefined, entries, install: undefined });
}

function cut() {
  applied = nextInt(random, applied, last());
  const domain = `d${nextInt(random, 0, 5)}`;
  const token = applied + 1;
  const requestId = `00000000-0000-4000-8000-${String(token).padStart(12, '0')}`;
  const lease = {
    domain,
    token,
    requestId,
    holder: 'h',
    metadata: [['k', 'v']],
    ttlMs: 15_000,
    coolDownMs: 0,
    grantedAtUnixMs: 1_796_000_000_000,
    owner: '',
    principal: 'p',
    version: 0,
    checkpointLeftMs: undefined,
  };
  const keepFrom = Math.max(0, applied - 10);
  say(`cut ${applied} ${domain} ${token}`);
  const meta = { ...snapshot, index: applied, term: termAt(applied) ?? (applied === anchor.index ? anchor.term : 0) };
  store.cut({ meta, changes: { summary, put: [{ type: 'domain', domain, lease }], remove: [] }, keepFrom });
}

function next() {
  say('acknowledged');
  if (nextInt(random, 0, 4) === 0) cut();
  else write();
}

store.listen({
  written: next,
  cutWritten: next,
  staged: next,
  failed: (error) => {
    say(`failed ${error.message}`);
    process.exit(74);
  },
});
say('started');
write();
