/** The nodes of a chaos run: what they are allowed to do, and what they did without leave. */
import { appendFileSync } from 'node:fs';
import { join } from 'node:path';
import { ProcessCluster, until } from '../cluster.js';
import type { ProcessNode } from '../cluster.js';
import { now } from './clock.js';
import type { Mesh } from './mesh.js';

/** How a process ended: its exit code, or the signal. */
type End = number | string;

/** See the head of the file. */
export class Nodes {
  readonly cluster: ProcessCluster;
  /** Ends that nobody allowed. */
  readonly violations: string[] = [];
  readonly #home: string;
  /** By process id of a node that runs: how it may end. */
  readonly #allowed = new Map<number, readonly End[]>();
  readonly #stopped = new Set<ProcessNode>();
  /** By revision: the hash that some node had there. */
  readonly #hashes = new Map<number, { readonly hash: string; readonly node: string }>();

  /** Logs go to `home`. */
  constructor(cluster: ProcessCluster, home: string) {
    this.cluster = cluster;
    this.#home = home;
  }

  get all(): readonly ProcessNode[] {
    return this.cluster.nodes;
  }

  /** Gives every node the addresses of the others that lead through the mesh. */
  async configure(mesh: Mesh): Promise<void> {
    for (const node of this.all) {
      const members = this.all.map(({ name, peerAddress }) => ({
        nodeId: name,
        peerAddress: name === node.name ? peerAddress : mesh.address(node.name, name),
      }));
      await this.cluster.configure(node, { members });
    }
  }

  start(node: ProcessNode): void {
    this.cluster.start(node);
    const { child } = node;
    const pid = child?.pid;
    if (pid === undefined) throw new Error(`${node.name} could not be started`);
    child?.stderr?.on('data', (text: string) => {
      appendFileSync(join(this.#home, `${node.name}.log`), text);
      // No disk of a run is ever set back, so what was acknowledged and is gone was never durable.
      const alarm = /"([^"]*although it acknowledged[^"]*)"/.exec(text)?.[1];
      if (alarm !== undefined) this.violations.push(`${node.name} says: ${alarm}`);
    });
    child?.once('exit', (code, signal) => {
      const end = code ?? signal ?? 'nothing';
      const allowed = this.#allowed.get(pid) ?? [];
      this.#allowed.delete(pid);
      if (allowed.includes(end)) return;
      this.violations.push(
        `${node.name} ended with ${end}, and nothing had been done to it that explains that: ${node.log.slice(-1_000)}`,
      );
    });
  }

  /** From now on the node may end like this. */
  allow(node: ProcessNode, ...ends: readonly End[]): void {
    const pid = node.child?.pid;
    if (pid !== undefined) this.#allowed.set(pid, ends);
  }

  /** Kills and waits until they are gone. */
  async kill(nodes: readonly ProcessNode[]): Promise<void> {
    for (const node of nodes) {
      this.allow(node, 'SIGKILL');
      this.#stopped.delete(node);
    }
    await this.cluster.kill(...nodes);
  }

  /** SIGSTOP. */
  stop(node: ProcessNode): void {
    this.#stopped.add(node);
    this.cluster.signal(node, 'SIGSTOP');
  }

  /** SIGCONT. */
  wake(node: ProcessNode): void {
    this.#stopped.delete(node);
    this.cluster.signal(node, 'SIGCONT');
  }

  /** Nodes that are neither dead nor stopped. */
  awake(): ProcessNode[] {
    return this.all.filter((node) => node.child !== undefined && !this.#stopped.has(node));
  }

  /** The node that says it leads in the newest term; undefined when none does. */
  async leader(): Promise<ProcessNode | undefined> {
    const seen = await Promise.all(
      this.awake().map(async (node) => ({ node, status: await this.cluster.status(node).catch(() => undefined) })),
    );
    const leaders = seen.flatMap(({ node, status }) =>
      status?.role === 'leader' ? [{ node, term: status.term }] : [],
    );
    return leaders.sort((a, b) => b.term - a.term)[0]?.node;
  }

  /** Everybody runs again. */
  heal(): void {
    for (const node of this.all) {
      if (this.#stopped.has(node)) this.wake(node);
      if (node.child === undefined) this.start(node);
    }
  }

  /** Compares the state hashes of the nodes that answer with all that were seen at the same revisions. */
  async compareHashes(): Promise<void> {
    await Promise.all(
      this.awake().map(async (node) => {
        const answer = await this.cluster.call(node, { type: 'getStateHash' }, 1_000).catch(() => undefined);
        if (answer === undefined) return;
        const { revision, hash } = answer.answer;
        const known = this.#hashes.get(revision);
        if (known === undefined) this.#hashes.set(revision, { hash, node: node.name });
        else if (known.hash !== hash)
          this.violations.push(
            `state hashes differ at ${revision}: ${known.hash} of ${known.node}, ${hash} of ${node.name}`,
          );
      }),
    );
  }

  /** Waits until all nodes have applied the same revision; then the hashes are equal. Nothing may be written meanwhile. */
  async untilEqual(limitMs: number): Promise<void> {
    const from = now();
    let last = '';
    await until(
      'equal states everywhere',
      async () => {
        const answers = await Promise.all(
          this.all.map((node) => this.cluster.call(node, { type: 'getStateHash' }, 2_000).catch(() => undefined)),
        );
        const seen = answers.map((each) =>
          each === undefined ? 'none' : `${each.answer.revision} ${each.answer.hash}`,
        );
        last = seen.join(', ');
        return new Set(seen).size === 1 && seen[0] !== 'none';
      },
      limitMs,
      () => `after ${Math.round(now() - from)} ms: ${last}`,
    );
    await this.compareHashes();
  }
}
