/** Ticks, stalls and the disk: what a core does without being spoken to. */
import type { Context } from '../../../src/replica/state.js';
import { majority } from './members.js';
import { advance } from './raft-messages.js';
import { askPreVotes, countVote, follow, mayCampaign } from './raft-roles.js';
import { inForce } from './raft-state.js';
import type { RaftModel } from './raft-state.js';

/** The ticks of a process: no faster than its clock. */
export class TickCount {
  #firstAt: number | undefined;

  /** `ticks` were counted in a step at `nowMs`. */
  check(
    ticks: number,
    ticked: boolean,
    nowMs: number,
    { raft, options }: Readonly<Context>,
    fail: (text: string) => void,
  ): void {
    if (ticked) this.#firstAt ??= nowMs;
    const most = this.#firstAt === undefined ? 0 : (nowMs - this.#firstAt) / options.tickMs + 1;
    if (ticks < 0 || (ticks > 0 && !ticked) || raft.ticks > most + 1e-6) {
      fail(`counts ${raft.ticks} ticks within ${most * options.tickMs} ms`);
    }
  }
}

/** A process that did not run for longer than an election time-out does not lead or campaign (P15). */
export function noticeGap(model: RaftModel, nowMs: number, electionMaxMs: number): void {
  const gap = model.lastStepAt === undefined ? 0 : nowMs - model.lastStepAt;
  model.lastStepAt = nowMs;
  model.firstStepAt ??= nowMs;
  if (gap > electionMaxMs && !model.stalled && model.role !== 'follower') follow(model, model.term, undefined);
}

/** A write that is not done after an election time-out: likewise, until it is. */
export function noticeDisk(model: RaftModel, nowMs: number, electionMaxMs: number): void {
  let oldest = nowMs;
  for (const at of model.pendingWrites.values()) oldest = Math.min(oldest, at);
  const stalled = nowMs - oldest > electionMaxMs;
  if (stalled === model.stalled) return;
  model.stalled = stalled;
  if (stalled && model.role !== 'follower') follow(model, model.term, undefined);
}

/** `count` ticks pass. */
export function passTicks(model: RaftModel, count: number): void {
  for (let i = 0; i < count; i++) {
    model.ticks++;
    if (model.leading !== undefined) {
      const { heardAt } = model.leading;
      const heard = (voter: string): boolean =>
        voter === model.key || model.ticks - (heardAt.get(voter) ?? 0) < model.minTicks;
      // Check-quorum (E8).
      if (!majority(inForce(model), heard)) follow(model, model.term, undefined);
      continue;
    }
    model.elapsed++;
    if (model.elapsed >= model.timeout) {
      if (mayCampaign(model)) askPreVotes(model, false);
      else follow(model, model.term, undefined);
    } else passEarly(model);
  }
}

function passEarly(model: RaftModel): void {
  const { early } = model;
  if (early.dueAt === undefined || model.ticks < early.dueAt) return;
  early.dueAt = undefined;
  if (model.role !== 'follower' || !mayCampaign(model)) return;
  early.term = model.term;
  early.lastAt = model.ticks;
  askPreVotes(model, true);
}

/** The write is done. The own vote is one of the votes, but only now. */
export function writeDone(model: RaftModel, seq: number, fail: (text: string) => void): void {
  const { write } = model;
  if (write?.seq !== seq) {
    fail(`write ${seq} is reported, ${write?.seq ?? 'none'} is under way`);
    return;
  }
  model.write = undefined;
  model.stable = write.end;
  model.facts.stable = Math.max(model.facts.stable, write.end);
  model.durable = { term: write.term, vote: write.vote };
  if (write.vote !== undefined) model.votes.set(write.term, write.vote);
  if (model.role === 'real' && write.term === model.term && write.vote === model.key) {
    countVote(model, model.key, true);
  }
  advance(model);
}
