/** One connection to a SQLite file in a thread of its own, because its calls stand still until they are through. */
import { createRequire } from 'node:module';
import { parentPort, workerData } from 'node:worker_threads';

const { guard, driver, file } = workerData;
const { sqliteFence } = await import(guard);
const loaded = createRequire(import.meta.url)(driver);
const db = new (loaded.DatabaseSync ?? loaded)(file);
db.exec('pragma busy_timeout = 60000');
db.exec('pragma synchronous = full');
const fence = sqliteFence(db);
// From here on it says `retry` at once, and the kit tries again: SQLite's own waiting sleeps up to 100 ms at a time.
db.exec('pragma busy_timeout = 0');
const tenures = new Map();

parentPort?.on('message', (task) => {
  if (task === 'close') {
    db.close();
    parentPort?.close();
    return;
  }
  try {
    parentPort?.postMessage({ type: 'ended', outcome: outcomeOf(task) });
  } catch (error) {
    parentPort?.postMessage({ type: 'failed', error });
  }
});

/**
 * @param {any} task
 * @returns {unknown}
 */
function outcomeOf({ type, leases, item, value, gate, tenure }) {
  if (type === 'open') {
    const opened = fence.open(leases[0]);
    if (opened.status !== 'applied') return opened;
    tenures.set(tenure, opened.value);
    return { ...opened, value: undefined };
  }
  const work = (/** @type {any} */ tx) => {
    for (const { domain } of leases) {
      if (value === undefined) tx.prepare('delete from rows where domain = ? and item = ?').run(domain, item);
      else {
        const sql = 'insert into rows values (?, ?, ?) on conflict (domain, item) do update set value = excluded.value';
        tx.prepare(sql).run(domain, item, value);
      }
    }
    if (gate === undefined) return;
    parentPort?.postMessage({ type: 'between' });
    Atomics.wait(gate, 0, 0);
    if (gate[0] === 2) throw new Error('the work failed');
  };
  return type === 'tenure' ? tenures.get(tenure).run(work) : fence.run(leases, work);
}
