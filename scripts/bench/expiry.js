/**
 * Many leases that end at the same time: how long it takes until all are gone, and how calls fare meanwhile, beside the
 * same calls in quiet time before. The calls come at a fixed pace, whether or not those before are answered, so that a
 * stall counts as often as it would hit callers.
 */
import { performance } from 'node:perf_hooks';
import { setTimeout as sleep } from 'node:timers/promises';
import { openPipelineChannel } from '../../dist/client/pipeline-channel.js';
import { leaderTtl } from '../../dist/replica/clock.js';
import { call, fill, granted, renew, renewAll } from './calls.js';
import { BenchCluster, quantile } from './cluster.js';

/** Long enough for the slowest machine to make all leases of a storm before the first of them ends. */
const TTL_MS = 30_000;
/** Between two renewals, and between two acquires, of those that are timed. */
const PACE_MS = 4;
/** Renewals are of so many leases in turn: those of one go one after another, as operations on one domain do. */
const KEPT = 500;
/** When the quiet time begins, after the last renewal, and how long it is: at half the TTL the leader writes checkpoints. */
const CALM_MS = 500;
const QUIET_MS = 4_000;

/** @typedef {import('./calls.js').Channel} Channel */

/**
 * @param {number} count leases that end together
 * @param {number} storms
 */
export async function benchExpiry(count = 50_000, storms = 2) {
  const cluster = await BenchCluster.start();
  const channel = openPipelineChannel((await cluster.untilLeader()).clientAddress);
  const quiet = new Pace(channel, 'quiet');
  const during = new Pace(channel, 'during');
  const gone = [];
  try {
    // Let the compilers of nodes and client see the code before anything counts.
    await oneStorm(channel, 'warm', count, new Pace(channel, 'warm'), new Pace(channel, 'warm/during'));
    for (let storm = 0; storm < storms; storm++) {
      gone.push(await oneStorm(channel, `storm/${storm}`, count, quiet, during));
    }
  } finally {
    channel.close();
    await cluster.stop();
  }
  const rows = [quiet.row('quiet'), during.row(`while ${count} leases end`)];
  return [
    ...rows,
    {
      when: `all ${count} gone, after the first was due`,
      'median ms': Math.round(quantile(gone, 0.5)),
      'worst ms': Math.round(quantile(gone, 1)),
    },
  ];
}

/**
 * @param {Channel} channel
 * @param {string} prefix
 * @param {number} count
 * @param {Pace} quiet
 * @param {Pace} during
 * @returns {Promise<number>} from the time at which the first was due until all were gone, in milliseconds
 */
async function oneStorm(channel, prefix, count, quiet, during) {
  const due = await armed(channel, prefix, count);
  await sleep(CALM_MS);
  await quiet.while(sleep(QUIET_MS));
  await until(due);
  const all = untilGone(channel, `${prefix}/`).then(() => performance.now() - due);
  await during.while(all);
  return all;
}

/**
 * Makes leases that end together, by renewing them together. Returns when the first of them is due at the earliest.
 * @param {Channel} channel
 * @param {string} prefix
 * @param {number} count
 */
async function armed(channel, prefix, count) {
  const leases = await fill(channel, prefix, 0, count, TTL_MS);
  const begin = performance.now();
  await renewAll(channel, leases);
  return begin + leaderTtl(TTL_MS);
}

/** @param {number} moment */
function until(moment) {
  return sleep(Math.max(0, moment - performance.now()));
}

/**
 * @param {Channel} channel
 * @param {string} prefix
 */
async function untilGone(channel, prefix) {
  for (;;) {
    const list = { type: 'list', prefix, pageSize: 1, after: '', freshness: 'linearizable' };
    const { domains } = await call(channel, list);
    if (domains.length === 0) return;
    await sleep(5);
  }
}

/** Renewals, one lease at a time, and acquires of free domains, at their pace, and how long each took. */
class Pace {
  /**
   * @param {Channel} channel
   * @param {string} name
   */
  constructor(channel, name) {
    this.channel = channel;
    this.name = name;
    this.made = 0;
    /** @type {number[]} */
    this.renewals = [];
    /** @type {number[]} */
    this.acquires = [];
  }

  /**
   * Goes on until `end` is there.
   * @param {Promise<unknown>} end
   */
  async while(end) {
    const names = Array.from({ length: KEPT }, (_, at) => `pace/${this.name}/kept/${this.made}/${at}`);
    const kept = await Promise.all(names.map((name) => granted(this.channel, name)));
    let ended = false;
    const over = end.finally(() => {
      ended = true;
    });
    const open = [];
    const begin = performance.now();
    for (let beat = 0; !ended; beat++) {
      const due = begin + beat * PACE_MS;
      await until(due);
      open.push(timed(due, this.renewals, renew(this.channel, kept.slice(beat % KEPT, (beat % KEPT) + 1))));
      open.push(timed(due, this.acquires, granted(this.channel, `pace/${this.name}/${this.made++}`, TTL_MS * 100)));
    }
    await Promise.all([over, ...open]);
    await Promise.all(kept.map((lease) => call(this.channel, { type: 'release', lease })));
  }

  /** @param {string} when */
  row(when) {
    return {
      when,
      'calls of each': this.renewals.length,
      'renewal p50 ms': quantile(this.renewals, 0.5).toFixed(2),
      'renewal p99 ms': quantile(this.renewals, 0.99).toFixed(2),
      'acquire p50 ms': quantile(this.acquires, 0.5).toFixed(2),
      'acquire p99 ms': quantile(this.acquires, 0.99).toFixed(2),
    };
  }
}

/**
 * From when it was due: what this process was late with counts too.
 * @param {number} due
 * @param {number[]} times
 * @param {Promise<unknown>} action
 */
async function timed(due, times, action) {
  await action;
  times.push(performance.now() - due);
}
