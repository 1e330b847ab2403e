/**
 * The claims of a raft scenario. Each answers with what is the case, so that a claim that fails can say it.
 */
import * as view from '../../src/raft/view.js';
import type { Claim, Finding } from './claims.js';
import { matches, parsePattern } from './network.js';
import type { RaftWorld } from './raft-world.js';
import { logText, memberText } from './text.js';

/** Compares `found` as the words say: `5`, `= 5`, `>= 5`, `<= 5`. */
function number(found: number, words: readonly string[]): Finding {
  const [operator = '=', value] = words.length === 1 ? ['=', ...words] : words;
  const claimed = Number(value);
  if (!Number.isInteger(claimed)) throw new Error(`not a number: ${value}`);
  const orders = { '=': found === claimed, '>=': found >= claimed, '<=': found <= claimed };
  if (!(operator in orders)) throw new Error(`not a comparison: ${operator}`);
  return { holds: orders[operator as keyof typeof orders], found: String(found) };
}

function text(found: string, words: readonly string[]): Finding {
  const claimed = words.join(' ');
  return { holds: found === claimed, found };
}

function outcome(world: RaftWorld, name: string, claimed: string): Finding {
  const operation = world.clients.operations.get(name);
  if (operation === undefined) throw new Error(`nobody asked for ${name}`);
  const found = operation.outcome;
  return { holds: found === claimed || found.startsWith(`${claimed} `), found };
}

function sent(world: RaftWorld, words: readonly string[], from: number): Finding {
  const pattern = parsePattern(words);
  const found = world.network.sent.slice(from).filter((packet) => matches(pattern, packet));
  return { holds: found.length > 0, found: found.length === 0 ? 'not sent' : `sent ${found.length} times` };
}

/** By its first word. */
export const RAFT_CLAIMS: Readonly<Record<string, Claim<RaftWorld>>> = {
  /** `leader A`, `leader none`, `leader some`: who leads in the greatest term. */
  leader: (world, words) => {
    const found = world.leader()?.name ?? 'none';
    return { holds: words[0] === 'some' ? found !== 'none' : words[0] === found, found };
  },
  role: (world, [name = '', ...words]) => text(view.roleName(world.node(name).up().raft), words),
  follows: (world, [name = '', ...words]) => {
    const leader = view.leaderOf(world.node(name).up().raft);
    return text(leader === undefined ? 'none' : memberText(leader), words);
  },
  /** `term B = 2`, `term * <= 2`. */
  term: (world, [name = '', ...words]) => {
    const nodes = name === '*' ? world.runningNodes() : [world.node(name)];
    const findings = nodes.map((node) => number(node.view().term, words));
    return findings.find((finding) => !finding.holds) ?? { holds: true, found: 'so' };
  },
  /** `vote B t2 = A`: whom B told that it votes for them, in any message so far. */
  vote: (world, [name = '', term = '', , ...words]) => text(world.voteIn(name, Number(term.slice(1))), words),
  committed: (world, [name = '', ...words]) => number(world.node(name).view().commit, words),
  stable: (world, [name = '', ...words]) => number(world.node(name).view().stable, words),
  last: (world, [name = '', ...words]) => number(world.node(name).view().last, words),
  log: (world, [name = '', ...words]) => {
    const node = world.node(name).view();
    return text(logText(node.entries(node.anchor.index, node.last)), words);
  },
  /** What is durable. */
  disk: (world, [name = '', ...words]) => text(logText(world.node(name).disk.image.entries), words),
  applied: (world, [name = '', ...words]) => text(`[${world.node(name).up().state.join(' ')}]`, words),
  /** `match A B = 3`: what leader A believes of B. */
  match: (world, [leader = '', name = '', ...words]) => {
    const of = world
      .node(leader)
      .view()
      .matches.find((follower) => memberText(follower.member) === name);
    return number(of?.match ?? -1, words);
  },
  /** `proved B>A 3`: what the newest append reply on this link acknowledged. */
  proved: (world, [link = '', ...words]) => {
    const { message } = world.network.last(parsePattern([link, 'AEr']));
    return number(
      message.type === 'appendReply' && message.result.type === 'proved' ? message.result.index : -1,
      words,
    );
  },
  acked: (world, [name = '']) => outcome(world, name, 'acked'),
  pending: (world, [name = '']) => outcome(world, name, 'pending'),
  unknown: (world, [name = '']) => outcome(world, name, 'unknown'),
  refused: (world, [name = '', reason]) => outcome(world, name, reason === undefined ? 'refused' : `refused ${reason}`),
  sees: (world, [name = '', ...words]) =>
    text(`[${(world.clients.operations.get(name)?.sees ?? []).join(' ')}]`, words),
  /** Sent by the command before this claim; `ever`: since the start. */
  sent: (world, words) => sent(world, words, world.sentBefore),
  ever: (world, words) => sent(world, words, 0),
  held: (world, words) => {
    const found = world.network.held.filter((packet) => matches(parsePattern(words), packet));
    return { holds: found.length > 0, found: `${found.length} held` };
  },
  running: (world, [name = '']) => ({ holds: world.node(name).running !== undefined, found: 'its process state' }),
};
