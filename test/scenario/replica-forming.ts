/** How the members of a lease scenario form a history: the forming of production, every question answered at once. */
import type { BootId, Incarnation } from '../../src/base/ids.js';
import type { Revision } from '../../src/base/revision.js';
import type { Member } from '../../src/raft/types.js';
import { createForming } from '../../src/replica/forming.js';
import type { Forming, FormingEvent } from '../../src/replica/forming.js';
import type { Genesis } from '../../src/replica/types.js';
import { STATE_LIMITS } from '../../src/base/limits.js';

/** What forming begins with. */
export interface FormingSettings {
  readonly members: readonly Member[];
  /** The wall clock of a member, milliseconds since 1970. */
  readonly unixMs: (member: Member) => number;
  /** A revision that the first one must exceed. */
  readonly floor: Revision | undefined;
  readonly holdMs: number;
  readonly finishedRequests: number;
  /** 1 for the first history of the scenario. */
  readonly generation: number;
}

/** Members ask at the first tick, and one of them writes the record at the next. */
const ROUNDS = 3;
const ROUND_MS = 1000;

/** The record that all members accept. Throws when one refuses, or when they do not all have the same. */
export function formHistory(settings: FormingSettings): Genesis {
  const { members, unixMs, floor, holdMs, finishedRequests, generation } = settings;
  const formed = new Map<string, Genesis>();
  const machines = new Map<string, Forming>();
  for (const [at, self] of members.entries()) {
    const id = String(generation * 100 + at).padStart(32, '0');
    machines.set(
      self.node,
      createForming({
        self,
        boot: id as BootId,
        cluster: 'scenario',
        members: members.map(({ node }) => ({ node, peerAddress: `${node}:1` })),
        form: true,
        floor,
        holdMs,
        limits: { ...STATE_LIMITS, finishedRequests },
        incarnation: id as Incarnation,
        genesis: undefined,
      }),
    );
  }
  let asks = 0;
  const askers = new Map<number, Member>();
  const take = (self: Member, nowMs: number, event: FormingEvent): void => {
    for (const effect of machines.get(self.node)?.step({ nowMs, unixMs: unixMs(self) }, [event]) ?? []) {
      if (effect.type === 'refused') throw new Error(`${self.node} does not form: ${effect.message}`);
      if (effect.type === 'formed') formed.set(self.node, effect.genesis);
      if (effect.type === 'store') take(self, nowMs, { type: 'stored' });
      if (effect.type === 'ask') {
        asks++;
        askers.set(asks, self);
        const asked = members.find(({ node }) => node === effect.node);
        if (asked !== undefined) take(asked, nowMs, { type: 'asked', id: asks, request: effect.request });
      }
      if (effect.type === 'respond') {
        const asker = askers.get(effect.id);
        if (asker !== undefined) take(asker, nowMs, { type: 'answered', node: self.node, response: effect.response });
      }
    }
  };
  for (let round = 0; round < ROUNDS; round++) {
    for (const self of members) take(self, round * ROUND_MS, { type: 'tick' });
  }
  const [genesis] = formed.values();
  const incarnations = new Set([...formed.values()].map(({ incarnation }) => incarnation));
  if (genesis === undefined || formed.size < members.length || incarnations.size > 1) {
    throw new Error(`${formed.size} of ${members.length} members formed ${incarnations.size} histories`);
  }
  return genesis;
}
