/**
 * A session that speaks the protocol itself, by the five rules of `lease.proto` and with every liberty that they
 * leave: any node, any repetition, however late, ids without a revision, deadlines of a few milliseconds.
 */
import type { Call, LeaseRef } from '../../../src/base/api.js';
import type { Domain, NodeId } from '../../../src/base/ids.js';
import type { Random } from '../../../src/base/random.js';
import { nextInt } from '../../../src/base/random.js';
import { ZERO_REVISION } from '../../../src/base/revision.js';
import type { Revision } from '../../../src/base/revision.js';
import type { Channel, Reply } from '../../../src/client/channel.js';
import { chance, pick, skewed, skewedInt, between, weighted } from '../chance.js';
import type { Claim } from '../judges/holds.js';
import { openChannel } from './channel.js';
import type { ClientPorts, SimClient } from './client-ports.js';
import { planEnding } from './endings.js';
import { Holdings } from './holdings.js';
import { ClientProcess } from './process.js';
import { Queueing } from './queueing.js';
import { requestId } from './surroundings.js';

/** Calls that are kept to be sent again, and calls that are open at once. */
const REMEMBERED = 60;
const MAX_OPEN = 6;

type Acquire = Extract<Call, { type: 'acquire' }>;

/** What a session does, with how often. */
const ACTS = [
  ['acquire', 42],
  ['repeat acquire', 12],
  ['renew', 20],
  ['release', 36],
  ['repeat', 7],
  ['withdraw', 6],
  ['read', 8],
  ['write', 12],
  ['look', 6],
  ['force release', 1],
  ['transfer', 0.5],
  ['vanish', 1],
] as const;

/** See the head of the file. */
export class RawClient implements SimClient {
  /** Its calls end by themselves. */
  readonly idle = true;
  readonly leaked = 0;
  readonly #ports: ClientPorts;
  readonly #random: Random;
  #process: ClientProcess;
  #lives = 1;
  #channels = new Map<NodeId, Channel>();
  readonly #holdings: Holdings;
  readonly #acquires: Acquire[] = [];
  readonly #calls: Call[] = [];
  readonly #current = new Map<Domain, LeaseRef>();
  #seen: Revision = ZERO_REVISION;
  #oldSeen: Revision = ZERO_REVISION;
  #leader: NodeId | undefined;
  readonly #queue: Queueing;
  #open = 0;
  #stopped = false;

  constructor(ports: ClientPorts) {
    this.#ports = ports;
    this.#random = ports.surroundings.random;
    this.#process = new ClientProcess(ports.machine, ports.surroundings.scheduler, this.#random);
    this.#holdings = new Holdings(this.#random);
    this.#queue = new Queueing(ports, {
      after: (ms, run) => this.#process.after(ms, run),
      again: (call) => {
        this.#send(call);
      },
      withdraw: (call) => {
        this.#withdrawIt(call);
      },
    });
  }

  start(): void {
    const { surroundings, parameters } = this.#ports;
    surroundings.scheduler.after(between(this.#random, ...parameters.pauseMs), () => {
      if (this.#stopped) return;
      if (this.#process.runs && this.#open < MAX_OPEN) this.#act();
      this.start();
    });
  }

  stop(): void {
    this.#stopped = true;
    this.#queue.forget();
  }

  /** An operator's call, unless the session stands still. */
  operate(call: Call): void {
    if (this.#process.runs) this.#send(call);
  }

  claims(): readonly Claim[] {
    const { machine, name, surroundings } = this.#ports;
    if (!this.#process.runs) return [];
    const about = { client: name, at: surroundings.scheduler.now, slackMs: 0 };
    return this.#holdings
      .heldAt(machine.uptimeMs)
      .map(({ incarnation, domain, token }) => ({ ...about, incarnation, domain, token }));
  }

  halt(why: 'stopped' | 'asleep'): void {
    this.#process.halt(why);
  }

  goOn(why: 'stopped' | 'asleep'): void {
    this.#process.goOn(why);
  }

  #act(): void {
    const act = weighted(this.#random, ACTS);
    switch (act) {
      case 'acquire':
        this.#acquire();
        return;
      case 'repeat acquire':
        if (this.#acquires.length > 0) this.#send(this.#recent(this.#acquires));
        return;
      case 'renew':
        this.#renew();
        return;
      case 'release':
        this.#releaseOne();
        return;
      case 'repeat':
        // A copy that comes much later: anything but what acts on the newest state whatever that is.
        if (this.#calls.length > 0) this.#send(pick(this.#random, this.#calls));
        return;
      case 'withdraw':
        this.#withdraw();
        return;
      case 'read':
        this.#read();
        return;
      case 'write':
        this.#write();
        return;
      case 'look':
        this.#ports.look();
        return;
      case 'force release': {
        const refs = [...this.#current.values()];
        if (refs.length > 0) this.#send({ type: 'forceRelease', ...pick(this.#random, refs), note: 'an operator' });
        return;
      }
      case 'transfer':
        this.#send({ type: 'transferLeadership', to: chance(this.#random, 500) ? undefined : this.#anyNode() });
        return;
      case 'vanish':
        this.#vanish();
    }
  }

  #acquire(): void {
    const { parameters, domains, name } = this.#ports;
    const seenRevision = weighted<Revision>(this.#random, [
      [ZERO_REVISION, 20],
      [this.#oldSeen, 15],
      [this.#seen, 65],
    ]);
    const domain = pick(this.#random, domains);
    const waits = seenRevision > 0 && chance(this.#random, parameters.waits);
    const cools = chance(this.#random, parameters.coolDowns);
    const call: Acquire = {
      type: 'acquire',
      domain,
      requestId: requestId(this.#random),
      holder: `${name}.${this.#lives}`,
      ttlMs: skewedInt(this.#random, ...parameters.ttlMs),
      waitMs: waits ? skewedInt(this.#random, ...parameters.waitMs) : 0,
      metadata: [],
      coolDownMs: cools ? skewedInt(this.#random, ...parameters.coolDownMs) : 0,
      slots: this.#slotsOf(domain),
      seenRevision,
    };
    if (waits) this.#queue.begin(call);
    this.#send(call);
    // Without a revision once-only reaches as far back as the table of the run, which may be nowhere: sent once.
    if (seenRevision === 0) return;
    this.#acquires.push(call);
    if (this.#acquires.length > REMEMBERED) this.#acquires.shift();
    // Two copies at once, on two nodes.
    if (chance(this.#random, 60)) this.#send(call);
  }

  /** What everybody asks for, and now and then something else. */
  #slotsOf(domain: Domain): number {
    const slots = this.#ports.slotsOf(domain);
    return slots > 1 && chance(this.#random, 30) ? pick(this.#random, [1, slots + 1]) : slots;
  }

  #renew(): void {
    const refs = this.#holdings.some(850);
    if (refs.length === 0) return;
    this.#send({ type: 'renew', leases: chance(this.#random, 500) ? refs : [pick(this.#random, refs)] });
  }

  #releaseOne(): void {
    const from = this.#holdings.some(800);
    if (from.length > 0) this.#release(pick(this.#random, from));
  }

  #release(lease: LeaseRef, to?: NodeId): void {
    this.#holdings.release(lease);
    this.#send({ type: 'release', lease }, to);
  }

  #withdraw(): void {
    if (this.#acquires.length === 0) return;
    this.#withdrawIt(this.#recent(this.#acquires));
  }

  #withdrawIt({ domain, requestId: id }: Acquire): void {
    this.#holdings.withdraw(id);
    this.#send({ type: 'withdraw', domain, requestId: id });
  }

  #read(): void {
    const freshness = chance(this.#random, 600) ? 'linearizable' : 'local';
    const kind = weighted(this.#random, [
      ['get', 6],
      ['verify', 5],
      ['list', 2],
      ['getStatus', 1],
      ['getStateHash', 1],
    ] as const);
    const known = this.#holdings.known();
    switch (kind) {
      case 'get':
        this.#send({ type: kind, domain: pick(this.#random, this.#ports.domains), freshness });
        return;
      case 'verify':
        if (known !== undefined) this.#send({ type: kind, lease: known, freshness });
        return;
      case 'list':
        this.#send({
          type: kind,
          prefix: pick(this.#random, ['', 'd', 'd1', 'e']),
          pageSize: skewedInt(this.#random, 1, 20),
          after: pick(this.#random, ['', '', ...this.#ports.domains]),
          freshness,
        });
        return;
      case 'getStatus':
      case 'getStateHash':
        this.#send({ type: kind });
    }
  }

  /** Writes as holder, or with an old token. */
  #write(): void {
    const { machine, name, writes, surroundings, parameters } = this.#ports;
    const [held] = this.#holdings.heldAt(machine.uptimeMs);
    if (held === undefined) return;
    const { domain, token, incarnation, ttlMs } = held;
    const delayMs = chance(this.#random, 150)
      ? between(this.#random, 0, 2 * ttlMs)
      : between(this.#random, ...parameters.latencyMs);
    surroundings.scheduler.after(delayMs, () => {
      writes({ domain, token, client: name, incarnation, kind: 'write' });
    });
  }

  /** Gone without a word, with all its calls; another session takes its place. */
  #vanish(): void {
    this.#ports.surroundings.coverage.count('client vanished');
    this.#process.end();
    this.#process = new ClientProcess(this.#ports.machine, this.#ports.surroundings.scheduler, this.#random);
    this.#lives++;
    this.#channels = new Map();
    this.#holdings.forget();
    this.#queue.forget();
    this.#open = 0;
  }

  /** Lets what `acquire` was granted run out, and is there when it does. */
  #leaveToItsEnd(acquire: Acquire, lease: LeaseRef, sentMs: number): void {
    const { surroundings, machine } = this.#ports;
    const { kind, afterMs, calls } = planEnding(this.#random, acquire, lease);
    // To repeat it before would be to renew it.
    const others = this.#acquires.filter(({ requestId: id }) => id !== acquire.requestId);
    this.#acquires.splice(0, this.#acquires.length, ...others);
    const process = this.#process;
    process.after(sentMs + afterMs - machine.uptimeMs, () => {
      if (this.#stopped) return;
      surroundings.coverage.count(`at the end of a lease: ${kind}`);
      const node = this.#leader ?? this.#anyNode();
      for (const call of calls) {
        if (call.type === 'release') this.#release(call.lease, node);
        else this.#send(call, node);
      }
    });
  }

  #send(call: Call, to?: NodeId): void {
    const unseen = call.type === 'acquire' && call.seenRevision === 0;
    if (call.type !== 'transferLeadership' && call.type !== 'forceRelease' && !unseen) {
      this.#calls.push(call);
      if (this.#calls.length > REMEMBERED) this.#calls.splice(nextInt(this.#random, 0, REMEMBERED - 1), 1);
    }
    const node = to ?? (this.#leader !== undefined && chance(this.#random, 500) ? this.#leader : this.#anyNode());
    const timeoutMs = weighted(this.#random, [
      [skewed(this.#random, 300, 4_000), 75],
      [skewed(this.#random, 2, 80), 15],
      [8_000, 10],
    ] as const);
    const process = this.#process;
    const sentMs = this.#ports.machine.uptimeMs;
    let open = true;
    // What is held by a leader does not keep the session from acting.
    const counts = call.type !== 'acquire' || call.waitMs === 0;
    if (counts) this.#open++;
    const giveUp = this.#channel(node).send(call, timeoutMs, (reply) => {
      open = false;
      if (counts) this.#open--;
      this.#take(call, sentMs, reply);
    });
    if (!chance(this.#random, 40)) return;
    process.after(skewed(this.#random, 1, timeoutMs), () => {
      if (!open || process !== this.#process) return;
      if (counts) this.#open--;
      this.#ports.surroundings.coverage.count('call cancelled');
      giveUp();
      if (call.type === 'acquire') this.#queue.told(call, undefined);
    });
  }

  #take(call: Call, sentMs: number, reply: Reply): void {
    if (call.type === 'acquire') this.#queue.told(call, reply);
    if (reply.type !== 'answer') return;
    const { answer, header } = reply;
    if (header !== undefined) {
      this.#leader = header.leader;
      if (header.revision > this.#seen) {
        if (chance(this.#random, 100)) this.#oldSeen = this.#seen;
        this.#seen = header.revision;
      }
    }
    const nowMs = this.#ports.machine.uptimeMs;
    const incarnation = header?.incarnation ?? '';
    if (call.type === 'acquire' && answer.type === 'acquire' && answer.outcome.type === 'granted') {
      const { domain, token, ttlMs } = answer.outcome.lease;
      const fresh = this.#holdings.told(call.requestId, answer.outcome.lease);
      const early = call.seenRevision > 0 && (call.waitMs === 0 || sentMs + ttlMs / 4 > nowMs);
      if (fresh && early && chance(this.#random, this.#ports.parameters.toTheEnd)) {
        this.#leaveToItsEnd(call, { domain, token }, sentMs);
        return;
      }
      const held = { domain, token, incarnation, ttlMs, untilMs: sentMs + safeMs(ttlMs) };
      this.#holdings.hold(call.requestId, held, nowMs);
    }
    if (call.type === 'renew' && answer.type === 'renew') {
      for (const [at, lease] of call.leases.entries()) {
        const result = answer.results[at];
        if (result === undefined) continue;
        this.#holdings.renewed(lease, result.type === 'live' ? sentMs + safeMs(result.ttlMs) : undefined, nowMs);
      }
    }
    if (answer.type === 'get' && answer.lease !== undefined) {
      this.#current.set(answer.domain, { domain: answer.domain, token: answer.lease.token });
    }
  }

  #channel(node: NodeId): Channel {
    const known = this.#channels.get(node);
    if (known !== undefined) return known;
    const { name, surroundings, links, attempts, servers, codecs } = this.#ports;
    const life = `${name}.${this.#lives}`;
    const ports = { surroundings, process: this.#process, links, attempts, client: name, life, servers, codecs };
    const channel = openChannel(ports, node);
    this.#channels.set(node, channel);
    return channel;
  }

  #anyNode(): NodeId {
    return pick(this.#random, this.#ports.servers()).node;
  }

  /** Mostly one of the last few. */
  #recent<T>(items: readonly T[]): T {
    return pick(this.#random, chance(this.#random, 700) ? items.slice(-4) : items);
  }
}

/** Rule 1, with the client library's margin. */
function safeMs(ttlMs: number): number {
  return ttlMs * 0.99 - Math.max(50, ttlMs * 0.02);
}
