/** Short ways to say what a client sends and what it should get. */
import { expect } from 'vitest';
import type {
  AcquireAnswer,
  AcquireCall,
  Answer,
  EndedView,
  GetAnswer,
  LeaseRef,
  LeaseView,
  ReleaseAnswer,
  RenewAnswer,
  VerifyAnswer,
} from '../../src/base/api.js';
import { nameOf } from '../../src/base/domain.js';
import type { Failure } from '../../src/base/errors.js';
import type { Domain, RequestId } from '../../src/base/ids.js';
import { ZERO_REVISION } from '../../src/base/revision.js';
import type { CallResult } from '../../src/replica/types.js';
import { PLAIN } from '../support/answers.js';
import type { MemoryCluster } from '../support/memory-cluster.js';

let made = 0;

/** A request id that no other call of this process has. */
export function newRequestId(): RequestId {
  made++;
  return `00000000-0000-4000-8000-${made.toString(16).padStart(12, '0')}` as RequestId;
}

/** An Acquire; a new request id unless one is given. */
export function acquireOf(domain: string, more: Partial<AcquireCall> = {}): AcquireCall {
  return {
    type: 'acquire',
    domain: domain as Domain,
    requestId: newRequestId(),
    holder: 'test',
    ttlMs: 3_000,
    metadata: [],
    ...PLAIN,
    seenRevision: ZERO_REVISION,
    ...more,
  };
}

export function answerOf(result: CallResult): Answer {
  if (result.type !== 'answer') throw new Error(`expected an answer and got ${JSON.stringify(result)}`);
  return result.answer;
}

export function failureOf(result: CallResult): Failure {
  if (result.type !== 'failure') throw new Error(`expected a failure and got ${JSON.stringify(result)}`);
  return result.failure;
}

/** Acquires through a node; the outcome. */
export async function acquire(
  cluster: MemoryCluster,
  node: string,
  call: AcquireCall,
  timeoutMs = 10_000,
): Promise<AcquireAnswer['outcome']> {
  const answer = answerOf(await cluster.answered(cluster.call(node, call, timeoutMs)));
  if (answer.type !== 'acquire') throw new Error(`an acquire was answered by ${answer.type}`);
  expect(answer.requestId).toBe(call.requestId);
  return answer.outcome;
}

/** Acquires and must be granted. */
export async function granted(
  cluster: MemoryCluster,
  node: string,
  call: AcquireCall,
  timeoutMs = 10_000,
): Promise<LeaseView> {
  const outcome = await acquire(cluster, node, call, timeoutMs);
  if (outcome.type !== 'granted') throw new Error(`not granted: ${JSON.stringify(outcome)}`);
  expect(nameOf(outcome.lease.domain)).toBe(call.domain);
  return outcome.lease;
}

export async function renew(
  cluster: MemoryCluster,
  node: string,
  ...leases: LeaseRef[]
): Promise<RenewAnswer['results']> {
  const answer = answerOf(await cluster.answered(cluster.call(node, { type: 'renew', leases: leases.map(refOf) })));
  if (answer.type !== 'renew') throw new Error(`a renew was answered by ${answer.type}`);
  return answer.results;
}

export async function release(cluster: MemoryCluster, node: string, lease: LeaseRef): Promise<ReleaseAnswer> {
  const answer = answerOf(await cluster.answered(cluster.call(node, { type: 'release', lease: refOf(lease) })));
  if (answer.type !== 'release') throw new Error(`a release was answered by ${answer.type}`);
  return answer;
}

export async function verify(cluster: MemoryCluster, node: string, lease: LeaseRef): Promise<VerifyAnswer['outcome']> {
  const answer = answerOf(
    await cluster.answered(cluster.call(node, { type: 'verify', lease: refOf(lease), freshness: 'linearizable' })),
  );
  if (answer.type !== 'verify') throw new Error(`a verify was answered by ${answer.type}`);
  return answer.outcome;
}

export async function get(
  cluster: MemoryCluster,
  node: string,
  domain: string,
  freshness: 'linearizable' | 'local' = 'linearizable',
): Promise<GetAnswer> {
  const answer = answerOf(
    await cluster.answered(cluster.call(node, { type: 'get', domain: domain as Domain, freshness })),
  );
  if (answer.type !== 'get') throw new Error(`a get was answered by ${answer.type}`);
  return answer;
}

export function endedOf(outcome: { readonly type: string; readonly ended?: EndedView }): EndedView {
  if (outcome.ended === undefined) throw new Error(`not ended: ${JSON.stringify(outcome)}`);
  return outcome.ended;
}

export function refOf({ domain, token }: LeaseRef): LeaseRef {
  return { domain, token };
}

/** The other running nodes. */
export function others(cluster: MemoryCluster, node: string): string[] {
  return [...cluster.nodes.keys()].filter((name) => name !== node);
}

/** Every running node has applied the same and hashes the same. */
export async function expectEqualStates(cluster: MemoryCluster): Promise<void> {
  const hashes = async (): Promise<string[]> => {
    const found: string[] = [];
    for (const [name, node] of cluster.nodes) {
      if (node.running === undefined) continue;
      const answer = answerOf(await cluster.answered(cluster.call(name, { type: 'getStateHash' })));
      if (answer.type === 'getStateHash') found.push(`${answer.revision} ${answer.hash}`);
    }
    return found;
  };
  await cluster.run(1_000);
  const all = await hashes();
  expect(new Set(all).size, all.join(', ')).toBe(1);
}
