/** Short ways to make a core, to feed it and to read what it did. */
import type { DirectoryId, NodeId } from '../../src/base/ids.js';
import { createRaft, settle, step } from '../../src/raft/raft.js';
import type { Raft } from '../../src/raft/raft.js';
import type {
  Configuration,
  Effect,
  Entry,
  Input,
  LogWrite,
  Member,
  Message,
  RaftOptions,
  Restored,
} from '../../src/raft/types.js';

/** A member by one letter; another directory is another member. */
export function member(node: string, directory = 'd1'): Member {
  return { node: node as NodeId, directory: directory as DirectoryId };
}

export const A = member('A');
export const B = member('B');
export const C = member('C');

export function optionsFor(self: Member, more: Partial<RaftOptions> = {}): RaftOptions {
  return {
    self,
    heartbeatTicks: 2,
    electionMinTicks: 10,
    electionMaxTicks: 20,
    maxAppendBytes: 100,
    maxInflightAppends: 4,
    maxInflightBytes: 300,
    maxUncommittedBytes: 1_000,
    maxUnappliedEntries: 1_000,
    seed: 1,
    ...more,
  };
}

export function configurationOf(voters: readonly Member[], more: Partial<Configuration> = {}): Configuration {
  return { voters, outgoing: [], learners: [], ...more };
}

/** What a member of a new cluster finds on its disk. */
export function fresh(configuration: Configuration, more: Partial<Restored> = {}): Restored {
  return {
    hard: { term: 0, vote: undefined },
    snapshot: { index: 0, term: 0, configuration, configurationIndex: 0 },
    anchor: { index: 0, term: 0 },
    entries: [],
    ...more,
  };
}

export function entry(index: number, term: number, bytes = 1): Entry {
  return { index, term, kind: 'command', payload: new Uint8Array(bytes).fill(index) };
}

/** Entries from `first` on, one for each of `terms`. */
export function entries(first: number, ...terms: number[]): Entry[] {
  return terms.map((term, at) => entry(first + at, term));
}

/** One core with a disk that completes writes only when told. */
export class Core {
  readonly raft: Raft;
  /** Of the last `feed`. */
  effects: Effect[] = [];
  /** Under way. */
  write: LogWrite | undefined;

  constructor(self: Member, restored: Restored, more: Partial<RaftOptions> = {}) {
    this.raft = createRaft(optionsFor(self, more), restored);
  }

  /** One batch: steps, then settles. Returns the messages that left. */
  feed(...inputs: Input[]): readonly Message[] {
    this.effects = inputs.flatMap((input) => step(this.raft, input));
    this.effects.push(...settle(this.raft));
    for (const effect of this.effects) if (effect.type === 'persist') this.write = effect.write;
    return this.effects.flatMap((effect) => (effect.type === 'send' ? [effect.message] : []));
  }

  receive(...messages: Message[]): readonly Message[] {
    return this.feed(...messages.map((message) => ({ type: 'message', message }) as const));
  }

  /** Completes the write under way. */
  written(): readonly Message[] {
    const { write } = this;
    if (write === undefined) throw new Error('no write is under way');
    this.write = undefined;
    return this.feed({ type: 'written', seq: write.seq });
  }

  /** Completes writes until none is under way. */
  flush(): readonly Message[] {
    const sent: Message[] = [];
    while (this.write !== undefined) sent.push(...this.written());
    return sent;
  }

  /** Ticks up to `limit` times until a message of this type leaves; returns what left with it. */
  tickUntil(type: Message['type'], limit = 100): readonly Message[] {
    for (let tick = 0; tick < limit; tick++) {
      const sent = this.feed({ type: 'tick' });
      if (sent.some((message) => message.type === type)) return sent;
    }
    throw new Error(`no ${type} left within ${limit} ticks`);
  }

  tick(times: number): readonly Message[] {
    return Array.from({ length: times }, () => this.feed({ type: 'tick' })).flat();
  }

  /** Campaigns until it has asked for votes durably, and gets those of `voters`. Returns what left on its election. */
  elect(...voters: Member[]): readonly Message[] {
    const { self } = this.raft.options;
    if (voters.length === 0) {
      for (let tick = 0; this.raft.role.type !== 'candidate' && tick < 100; tick++) this.feed({ type: 'tick' });
      return this.flush();
    }
    const [asked] = this.tickUntil('preVote');
    if (asked?.type !== 'preVote') throw new Error('no pre-vote');
    const { term, attempt } = asked;
    this.receive(
      ...voters.map((from) => ({ type: 'preVoteReply', from, to: self, term, granted: true, attempt }) as const),
    );
    const requests = this.flush();
    const [vote] = requests;
    if (vote?.type !== 'vote') throw new Error('no vote was asked for');
    return this.receive(
      ...voters.map(
        (from) => ({ type: 'voteReply', from, to: self, term, granted: true, attempt: vote.attempt }) as const,
      ),
    );
  }

  /** A follower's proof. */
  proof(from: Member, request: number, index: number, durable = index): Message {
    const { self } = this.raft.options;
    const { term } = this.raft.hard;
    const result = { type: 'proved', index } as const;
    return { type: 'appendReply', from, to: self, term, request, result, durable, diskLow: false };
  }

  rejection(): string | undefined {
    return this.effects.flatMap((effect) => (effect.type === 'rejected' ? [effect.reason] : []))[0];
  }

  has(type: Effect['type']): boolean {
    return this.effects.some((effect) => effect.type === type);
  }
}

/** The messages of one type. */
export function only<T extends Message['type']>(
  messages: readonly Message[],
  type: T,
): Extract<Message, { readonly type: T }>[] {
  return messages.filter((message): message is Extract<Message, { readonly type: T }> => message.type === type);
}

/** A proposal of so many bytes. */
export function proposal(bytes = 1, more: Partial<Extract<Input, { type: 'propose' }>> = {}): Input {
  return { type: 'propose', payload: new Uint8Array(bytes), ...more };
}
