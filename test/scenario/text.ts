/**
 * The small notations of scenario files, in both directions: members `A` (second data directory: `A2`), positions
 * `3@2` (index@term), configurations `{A,B}->{B,C} learners {D}`, logs `[1 1:x 2:{A,B,C}]` (term, then the payload;
 * a bare term is a no-op).
 */
import type { DirectoryId, NodeId } from '../../src/base/ids.js';
import type { Configuration, Entry, Member, Message, Position } from '../../src/raft/types.js';
import { encodeConfiguration } from '../../src/wire/configuration.js';

/** The member `name` in its `generation`th data directory (1 = the one that the configuration lists). */
export function member(name: string, generation = 1): Member {
  const directory = (name.charCodeAt(0) * 256 + generation).toString(16).padStart(32, '0');
  return { node: name as NodeId, directory: directory as DirectoryId };
}

/** `A`, or `A2` for the member's second directory. A directory that {@link member} did not make has no generation. */
export function memberText(m: Member): string {
  const made = Number.parseInt(m.directory, 16);
  const generation = made > 0xffff ? 1 : made % 256;
  return generation === 1 ? m.node : m.node + String(generation);
}

/** Reads `A` or `A2`. */
export function parseMember(text: string): Member {
  const match = /^([A-Z])(\d?)$/.exec(text);
  if (match === null) throw new Error(`not a member: ${text}`);
  return member(match[1] ?? '', match[2] === '' ? 1 : Number(match[2]));
}

function parseMembers(text: string): Member[] {
  const inner = text.replace(/^\{|\}$/g, '');
  return inner === '' ? [] : inner.split(',').map(parseMember);
}

/** Reads `{A,B,C}`, `{A,B,C}->{C,D,E}` (joint: old, then new) and ` learners {F}` after either. */
export function parseConfiguration(text: string): Configuration {
  const match = /^(\{[^}]*\})(?:->(\{[^}]*\}))?(?: ?learners ?(\{[^}]*\}))?$/.exec(text);
  if (match === null) throw new Error(`not a configuration: ${text}`);
  const [, first = '', second, learners = '{}'] = match;
  const outgoing = second === undefined ? [] : parseMembers(first);
  return { voters: parseMembers(second ?? first), outgoing, learners: parseMembers(learners) };
}

function membersText(members: readonly Member[]): string {
  return `{${members.map(memberText).join(',')}}`;
}

/** The inverse of {@link parseConfiguration}. */
export function configurationText(c: Configuration): string {
  const joint = c.outgoing.length > 0 ? `${membersText(c.outgoing)}->` : '';
  const learners = c.learners.length > 0 ? `learners${membersText(c.learners)}` : '';
  return joint + membersText(c.voters) + learners;
}

/** Payload bytes of a client command, and back. Scenario payloads are ASCII words. */
export function payloadOf(text: string): Uint8Array {
  return Uint8Array.from(text, (letter) => letter.charCodeAt(0));
}
export function payloadText(payload: Uint8Array): string {
  return String.fromCharCode(...payload);
}

/** What an entry carries: '' for a no-op, the command's text, or the configuration. Two entries are equal when term and this are. */
export function contentText(entry: Entry): string {
  if (entry.configuration !== undefined) return configurationText(entry.configuration);
  return payloadText(entry.payload);
}

/** How the payload of an entry is shown. */
export type Content = (entry: Entry) => string;

/** Reads `[1 1:x 2:{A,B}]` as entries that follow `previous`. */
export function parseLog(text: string, previous: number): Entry[] {
  const inner = text.replace(/^\[|\]$/g, '').trim();
  return (inner === '' ? [] : inner.split(' ')).map((word, at): Entry => {
    const [term = '', content] = word.split(/:(.*)/);
    const base = { index: previous + 1 + at, term: Number(term), payload: new Uint8Array() };
    if (content === undefined) return { ...base, kind: 'noop' };
    if (content.startsWith('{')) {
      const configuration = parseConfiguration(content);
      return { ...base, kind: 'configuration', payload: encodeConfiguration(configuration), configuration };
    }
    return { ...base, kind: 'command', payload: payloadOf(content) };
  });
}

/** The inverse of {@link parseLog}; more than eight equal-looking words are not shortened: a trace must be complete. */
export function logText(entries: readonly Entry[], content: Content = contentText): string {
  return `[${entries.map((e) => (e.kind === 'noop' ? String(e.term) : `${e.term}:${content(e)}`)).join(' ')}]`;
}

/** `index@term`. */
export function positionText(p: Position): string {
  return `${p.index}@${p.term}`;
}
/** The inverse of {@link positionText}. */
export function parsePosition(text: string): Position {
  const match = /^(\d+)@(\d+)$/.exec(text);
  if (match === null) throw new Error(`not a position: ${text}`);
  return { index: Number(match[1]), term: Number(match[2]) };
}

/** Short names of the messages. */
export const KINDS: Readonly<Record<Message['type'], string>> = {
  preVote: 'PV',
  preVoteReply: 'PVr',
  vote: 'RV',
  voteReply: 'RVr',
  append: 'AE',
  appendReply: 'AEr',
  heartbeat: 'HB',
  heartbeatReply: 'HBr',
  installSnapshot: 'IS',
  timeoutNow: 'TN',
  notMember: 'NM',
};

function bodyText(m: Message, content: Content): string {
  switch (m.type) {
    case 'preVote':
      return `last ${positionText(m.last)}`;
    case 'vote':
      return `last ${positionText(m.last)}${m.transfer ? ' transfer' : ''}`;
    case 'preVoteReply':
    case 'voteReply':
      return m.granted ? 'yes' : 'no';
    case 'append':
      return `prev ${positionText(m.prev)} ${logText(m.entries, content)} commit ${m.commit}`;
    case 'appendReply':
      return m.result.type === 'proved' ? `proved ${m.result.index}` : `conflict hint ${positionText(m.result.hint)}`;
    case 'heartbeat':
      return `round ${m.round} commit ${m.commit}`;
    case 'heartbeatReply':
      return `round ${m.round}`;
    case 'installSnapshot':
      return positionText(m.meta);
    case 'timeoutNow':
    case 'notMember':
      return '';
  }
}

/** One message as one line: `A>B AE t1 prev 1@1 [1:x] commit 1`. */
export function messageText(m: Message, content: Content = contentText): string {
  return `${memberText(m.from)}>${memberText(m.to)} ${KINDS[m.type]} t${m.term} ${bodyText(m, content)}`.trimEnd();
}
