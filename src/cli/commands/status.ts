import type { GetStatusAnswer, GetStatusCall, MemberView } from '../../base/api.js';
import type { NodeId } from '../../base/ids.js';
import type { Answered, Cluster } from '../cluster.js';
import type { CommandSpec } from '../command.js';
import { CLUSTER_OPTIONS, readEndpoints, withCluster } from '../endpoints.js';
import { EXIT, type Io } from '../io.js';
import { type Cell, pairs, table, toned } from '../table.js';

/** What one endpoint said. */
export type NodeStatus =
  | { readonly endpoint: string; readonly answered: Answered<GetStatusCall> }
  | { readonly endpoint: string; readonly error: string };

/** `fencepost status`. */
export const spec: CommandSpec = {
  operands: '',
  options: CLUSTER_OPTIONS,
  notes: 'Asks every endpoint.',
  exitCodes:
    'Exit codes: 0 at least one endpoint knows a leader, also when there are alarms or others do not answer (scripts look\nat alarms and error in --json); 2 wrong usage; 3 none knows a leader.',
  async run(input, io) {
    const where = readEndpoints(input, io);
    input.finish('status');
    return await withCluster(io, where, async (cluster) => {
      const nodes = await Promise.all(cluster.endpoints.map((endpoint) => ask(cluster, endpoint)));
      const leader = leaderOf(nodes);
      if (input.has('json')) io.out(JSON.stringify(asJson(nodes, leader)));
      else show(nodes, leader, io);
      return leader === undefined ? EXIT.failed : EXIT.ok;
    });
  },
};

/** Whom the nodes take for the leader; the node of the highest term is right. */
export function leaderOf(nodes: readonly NodeStatus[]): NodeId | undefined {
  let best: GetStatusAnswer | undefined;
  for (const { answer } of answersOf(nodes))
    if (answer.leader !== undefined && (best === undefined || answer.term > best.term)) best = answer;
  return best?.leader;
}

/** Asks one node; a node that does not answer is part of the picture, not an error. */
export async function ask(cluster: Cluster, endpoint: string): Promise<NodeStatus> {
  try {
    return { endpoint, answered: await cluster.ask(endpoint, { type: 'getStatus' }) };
  } catch (error) {
    const text = error instanceof Error ? error.message : String(error);
    // The endpoint stands beside it.
    return { endpoint, error: text.startsWith(`${endpoint}: `) ? text.slice(endpoint.length + 2) : text };
  }
}

function answersOf(nodes: readonly NodeStatus[]): Answered<GetStatusCall>[] {
  return nodes.flatMap((node) => ('answered' in node ? [node.answered] : []));
}

/** The members as the leader sees them, else as whoever answered does. */
function membersOf(nodes: readonly NodeStatus[]): {
  readonly fromLeader: boolean;
  readonly members: readonly MemberView[];
} {
  const answers = answersOf(nodes).map(({ answer }) => answer);
  const leading = answers.find((answer) => answer.role === 'leader');
  return { fromLeader: leading !== undefined, members: (leading ?? answers[0])?.members ?? [] };
}

function show(nodes: readonly NodeStatus[], leader: NodeId | undefined, io: Io): void {
  const header = answersOf(nodes).find((answered) => answered.header !== undefined)?.header;
  io.out(
    pairs(
      [
        ['cluster', header?.cluster ?? { text: 'no node answered', tone: 'bad' }],
        ['incarnation', header === undefined || header.incarnation === '' ? 'none' : header.incarnation],
        ['leader', leader === undefined ? { text: 'none', tone: 'bad' } : { text: leader, tone: 'good' }],
      ],
      io.colour,
    ),
  );
  io.out('');
  io.out(
    table(
      [
        { title: 'endpoint' },
        { title: 'node' },
        { title: 'role' },
        { title: 'term', numeric: true },
        { title: 'committed', numeric: true },
        { title: 'applied', numeric: true },
      ],
      nodes.map((node): readonly Cell[] => {
        if ('error' in node) return [node.endpoint, '', { text: 'no answer', tone: 'bad' }];
        const { answer } = node.answered;
        return [
          node.endpoint,
          answer.node,
          { text: answer.role, tone: answer.role === 'leader' ? 'good' : answer.role === 'stopped' ? 'bad' : 'plain' },
          String(answer.term),
          String(answer.committedRevision),
          String(answer.appliedRevision),
        ];
      }),
      io.colour,
    ),
  );
  const { fromLeader, members } = membersOf(nodes);
  if (members.length > 0) {
    io.out('');
    io.out(
      table(
        [
          { title: 'member' },
          { title: 'peer address' },
          { title: 'part' },
          { title: 'reachable' },
          { title: 'lag', numeric: true },
          { title: 'directory' },
        ],
        members.map((member): readonly Cell[] => [
          member.node,
          member.peerAddress,
          member.voter ? 'voter' : 'learner',
          !fromLeader ? '?' : member.reachable ? 'yes' : { text: 'no', tone: 'bad' },
          fromLeader ? String(member.lag) : '?',
          member.directory ?? 'none',
        ]),
        io.colour,
      ),
    );
  }
  for (const node of nodes) {
    const lines =
      'error' in node
        ? [`${node.endpoint} does not answer: ${node.error}; start its node, or see what its log says`]
        : node.answered.answer.alarms.map((alarm) => `${node.answered.answer.node}: ${alarm}`);
    for (const line of lines) io.out(toned(line, 'bad', io.colour));
  }
  if (leader === undefined) io.out(toned(noLeader(nodes, members), 'bad', io.colour));
}

/** How many answer and how many a leader needs. Without a member that says who belongs to it, the endpoints count. */
function noLeader(nodes: readonly NodeStatus[], members: readonly MemberView[]): string {
  const answering = new Set(answersOf(nodes).map(({ answer }) => answer.node));
  const voters = members.filter((member) => member.voter);
  if (voters.length === 0)
    return `no leader: ${answering.size} of ${nodes.length} endpoints answer, and none says who the members are`;
  const up = voters.filter((member) => answering.has(member.node)).length;
  const needed = Math.floor(voters.length / 2) + 1;
  const next = up < needed ? 'start more' : 'wait some seconds, then see what their logs say';
  return `no leader: ${up} of ${voters.length} members answer, ${needed} are needed; ${next}`;
}

function asJson(nodes: readonly NodeStatus[], leader: NodeId | undefined): unknown {
  const { fromLeader, members } = membersOf(nodes);
  const header = answersOf(nodes).find((answered) => answered.header !== undefined)?.header;
  return {
    cluster: header?.cluster ?? null,
    incarnation: header === undefined || header.incarnation === '' ? null : header.incarnation,
    leader: leader ?? null,
    nodes: nodes.map((node) => {
      if ('error' in node) return { endpoint: node.endpoint, error: node.error };
      const { answer } = node.answered;
      return {
        endpoint: node.endpoint,
        node: answer.node,
        role: answer.role,
        leader: answer.leader ?? null,
        term: answer.term,
        base: String(answer.base),
        lastRevision: String(answer.lastRevision),
        durableRevision: String(answer.durableRevision),
        committedRevision: String(answer.committedRevision),
        appliedRevision: String(answer.appliedRevision),
        alarms: answer.alarms,
      };
    }),
    members: members.map((member) => ({
      ...member,
      directory: member.directory ?? null,
      // Known to a leader only.
      reachable: fromLeader ? member.reachable : null,
      lag: fromLeader ? member.lag : null,
    })),
  };
}
