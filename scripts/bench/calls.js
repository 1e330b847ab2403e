/** Calls over a client's channel, and many leases at a time, for the benchmarks. */
import { acquireOf } from './cluster.js';

/** Leases of one renewal: the most that it may name. */
export const BATCH = 1_000;
/** Acquires under way while leases are made. */
const IN_FLIGHT = 1_024;

/**
 * @typedef {import('../../dist/client/channel.js').Channel} Channel
 * @typedef {import('../../dist/base/api.js').LeaseRef} LeaseRef
 */

/**
 * @param {Channel} channel
 * @param {any} of
 * @param {number} timeoutMs
 * @returns {Promise<any>} the answer; throws whatever else came
 */
export function call(channel, of, timeoutMs = 30_000) {
  return new Promise((done, fail) => {
    channel.send(of, timeoutMs, (reply) => {
      if (reply.type === 'answer') done(reply.answer);
      else fail(new CallFailed(reply));
    });
  });
}

/** Something else came than an answer. */
class CallFailed extends Error {
  /** @param {import('../../dist/client/channel.js').Reply} reply */
  constructor(reply) {
    super(JSON.stringify(reply));
    this.reply = reply;
  }
}

/**
 * Throws unless the domain is granted.
 * @param {Channel} channel
 * @param {string} domain
 * @param {number} ttlMs
 * @returns {Promise<LeaseRef>}
 */
export async function granted(channel, domain, ttlMs = 600_000) {
  return await grantedFor(channel, acquireOf(domain, ttlMs));
}

/**
 * @param {Channel} channel
 * @param {import('../../dist/base/api.js').AcquireCall} acquire
 * @returns {Promise<LeaseRef>}
 */
async function grantedFor(channel, acquire) {
  const { outcome } = await call(channel, acquire);
  if (outcome.type !== 'granted') throw new Error(`not granted: ${JSON.stringify(outcome)}`);
  return { domain: outcome.lease.domain, token: outcome.lease.token };
}

/**
 * As {@link granted}, and asks again with the same request while there is no leader: a machine that is busy with more than
 * the benchmark may cost a leader its lead, and what is made here is not what is measured.
 * @param {Channel} channel
 * @param {string} domain
 * @param {number} ttlMs
 * @returns {Promise<LeaseRef>}
 */
async function grantedAtLast(channel, domain, ttlMs) {
  const acquire = acquireOf(domain, ttlMs);
  for (;;) {
    try {
      return await grantedFor(channel, acquire);
    } catch (error) {
      const reply = error instanceof CallFailed ? error.reply : undefined;
      if (reply?.type !== 'failure' || reply.failure.reason !== 'NO_LEADER') throw error;
    }
  }
}

/**
 * Makes leases number `from` to `to - 1` below a prefix.
 * @param {Channel} channel
 * @param {string} prefix
 * @param {number} from
 * @param {number} to
 * @param {number} ttlMs
 * @returns {Promise<LeaseRef[]>}
 */
export async function fill(channel, prefix, from, to, ttlMs = 86_400_000) {
  /** @type {LeaseRef[]} */
  const leases = [];
  let next = from;
  await Promise.all(
    Array.from({ length: IN_FLIGHT }, async () => {
      while (next < to) leases.push(await grantedAtLast(channel, `${prefix}/${next++}`, ttlMs));
    }),
  );
  return leases;
}

/**
 * Renews all of them in batches. Throws unless every one is live.
 * @param {Channel} channel
 * @param {readonly LeaseRef[]} leases
 */
export async function renewAll(channel, leases) {
  const batches = [];
  for (let at = 0; at < leases.length; at += BATCH) batches.push(leases.slice(at, at + BATCH));
  await Promise.all(batches.map((batch) => renew(channel, batch)));
}

/**
 * One renewal. Throws unless every lease is live.
 * @param {Channel} channel
 * @param {readonly LeaseRef[]} leases 1 to {@link BATCH}
 */
export async function renew(channel, leases) {
  const { results } = await call(channel, { type: 'renew', leases });
  const lost = results.filter((/** @type {any} */ { type }) => type !== 'live').length;
  if (lost > 0) throw new Error(`${lost} leases are not live`);
}
