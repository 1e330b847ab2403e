/**
 * E7, all of it: every graph of links between five members (Howard and Abraham, "Raft does not guarantee liveness in
 * the face of network faults", 2020). Where three members reach each other there must be one leader that stays, and
 * writes must work; pre-vote and check-quorum are both needed for that. Elsewhere nothing is promised: a member that
 * alone reaches a majority may have the older log.
 */
import { describe, expect, it } from 'vitest';
import { createRaft, settle, step } from '../../src/raft/raft.js';
import type { Raft } from '../../src/raft/raft.js';
import type { Effect, Input, Message } from '../../src/raft/types.js';
import { isLeader } from '../../src/raft/view.js';
import { configurationOf, fresh, member, optionsFor } from './kit.js';

const NAMES = ['A', 'B', 'C', 'D', 'E'];
const LINKS = NAMES.flatMap((left, at) => NAMES.slice(at + 1).map((right) => left + right));
const TICKS = { heartbeatTicks: 3, electionMinTicks: 10, electionMaxTicks: 20 };

/** Five cores whose disks are instant, and whose messages arrive at once over the links that are up. */
class Linked {
  readonly rafts: Map<string, Raft>;
  #down: ReadonlySet<string> = new Set();
  readonly #flying: Message[] = [];

  constructor(seed: number) {
    const members = NAMES.map((name) => member(name));
    const start = fresh(configurationOf(members));
    this.rafts = new Map(
      members.map((self, at) => [self.node, createRaft(optionsFor(self, { ...TICKS, seed: seed * 10 + at }), start)]),
    );
  }

  cut(links: readonly string[]): void {
    this.#down = new Set(links.flatMap((link) => [link, link.charAt(1) + link.charAt(0)]));
  }

  tick(times: number): void {
    for (let tick = 0; tick < times; tick++) {
      for (const raft of this.rafts.values()) this.input(raft, { type: 'tick' });
      for (let message = this.#flying.shift(); message !== undefined; message = this.#flying.shift()) {
        const to = this.rafts.get(message.to.node);
        if (to !== undefined) this.input(to, { type: 'message', message });
      }
    }
  }

  input(raft: Raft, input: Input): void {
    for (const effect of [...step(raft, input), ...settle(raft)]) this.#perform(raft, effect);
  }

  #perform(raft: Raft, effect: Effect): void {
    if (effect.type === 'persist') this.input(raft, { type: 'written', seq: effect.write.seq });
    else if (effect.type === 'committed') this.input(raft, { type: 'applied', index: effect.index });
    else if (effect.type === 'send') {
      const { from, to } = effect.message;
      if (!this.#down.has(from.node + to.node)) this.#flying.push(effect.message);
    }
  }

  /** The one that leads in the greatest term. */
  leader(): Raft | undefined {
    return [...this.rafts.values()].filter(isLeader).sort((a, b) => b.hard.term - a.hard.term)[0];
  }
}

/** Whether three members are linked with each other. */
function hasLinkedMajority(down: readonly string[]): boolean {
  const up = (link: string): boolean => !down.includes(link);
  return NAMES.some((a, i) =>
    NAMES.slice(i + 1).some((b, j) => up(a + b) && NAMES.slice(i + j + 2).some((c) => up(a + c) && up(b + c))),
  );
}

/** What is wrong in a cluster whose links in `down` have gone down, or undefined. */
function fault(down: readonly string[], seed: number): string | undefined {
  const cluster = new Linked(seed);
  cluster.tick(3 * TICKS.electionMaxTicks);
  if (cluster.leader() === undefined) return 'nobody leads while all links are up';
  cluster.cut(down);
  cluster.tick(8 * TICKS.electionMaxTicks);
  const leader = cluster.leader();
  if (leader === undefined) return 'nobody leads';
  const { term } = leader.hard;
  cluster.tick(6 * TICKS.electionMaxTicks);
  if (cluster.leader() !== leader || leader.hard.term !== term) return 'its leader does not stay';
  const before = leader.commit;
  cluster.input(leader, { type: 'propose', payload: new Uint8Array(1) });
  cluster.tick(2);
  return leader.commit === before + 1 ? undefined : 'no write works';
}

describe('five members and every graph of their links', () => {
  const graphs = Array.from({ length: 1 << LINKS.length }, (_value, graph) =>
    LINKS.filter((_link, at) => (graph & (1 << at)) !== 0),
  );
  const promised = graphs.filter(hasLinkedMajority);

  it('have a leader that stays and writes, wherever three reach each other', { timeout: 120_000 }, () => {
    const faults = promised.flatMap((down, at) => {
      const found = fault(down, at);
      return found === undefined ? [] : [`without ${down.join(' ')}: ${found}`];
    });
    expect(faults).toEqual([]);
    expect([graphs.length, promised.length]).toEqual([1_024, 636]);
  });
});
