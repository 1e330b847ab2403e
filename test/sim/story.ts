/** The last events of a run, in the language of test/scenario, and a digest of all of them. */
import type { NodeId } from '../../src/base/ids.js';
import type { Entry, Message } from '../../src/raft/types.js';
import type { Event } from '../../src/replica/types.js';
import { commandCodec } from '../../src/wire/command.js';
import { messageText } from '../scenario/text.js';
import type { Step } from './observation.js';

/** Lines that are kept. */
const KEPT = 300;

/** A line, or what it will be made of: most are thrown away unread. */
type Line = string | { readonly node: NodeId; readonly event: Event };

/** See the head of the file. */
export class Story {
  readonly #now: () => number;
  readonly #lines: { readonly at: number; readonly line: Line }[] = [];
  #hash = 0x811c9dc5;
  #other = 0x9747b28c;

  constructor(now: () => number) {
    this.#now = now;
  }

  /** Something was done to the world, or arrives at a member, whose step will tell it once more. */
  tell(line: string, what?: 'arrives'): void {
    for (let at = 0; at < line.length; at++) this.#mix(line.charCodeAt(at));
    if (what !== 'arrives') this.#keep(line);
  }

  /** A member took a step. */
  stepped({ process, at, events, effects, context }: Step): void {
    this.#mix(Math.floor(at * 1_000));
    this.#mix(process.run);
    this.#mix(events.length * 64 + effects.length);
    this.#mix(context.raft.hard.term * 65_536 + context.applied);
    if (events.every(({ type }) => type === 'tick')) return;
    const { node } = process.member;
    for (const event of events) if (event.type !== 'tick') this.#keep({ node, event });
    for (const effect of effects) {
      if (effect.type === 'log') this.#keep(`${node} says ${effect.level}: ${effect.message}`);
    }
  }

  /** 16 hex digits. */
  get digest(): string {
    return [this.#hash, this.#other].map((half) => (half >>> 0).toString(16).padStart(8, '0')).join('');
  }

  /** The kept lines, oldest first. */
  lines(): string[] {
    return this.#lines.map(({ at, line }) => {
      const text = typeof line === 'string' ? line : `${line.node}: ${eventText(line.event)}`;
      return `${at.toFixed(2)} ${text}`;
    });
  }

  #keep(line: Line): void {
    this.#lines.push({ at: this.#now(), line });
    if (this.#lines.length >= 2 * KEPT) this.#lines.splice(0, KEPT);
  }

  #mix(value: number): void {
    this.#hash = Math.imul(this.#hash ^ value, 0x01000193);
    this.#other = Math.imul((this.#other ^ value) + (this.#other >>> 13), 0x5bd1e995);
  }
}

function eventText(event: Event): string {
  switch (event.type) {
    case 'message':
      return `deliver ${textOf(event.message)}`;
    case 'call':
      return `call ${event.id} ${JSON.stringify(event.call)}`;
    case 'forwarded':
      return `forwarded ${event.from}/${event.id} ${JSON.stringify(event.call)}`;
    case 'forwardResult':
      return `forward result ${event.id} from ${event.from} ${JSON.stringify(event.result)}`;
    case 'chunk': {
      const { term, request, sequence, meta, records, total } = event.chunk;
      return `chunk ${sequence} of ${request} t${term} from ${event.from.node}: ${records.length} records at ${meta.index}${total === undefined ? '' : ', last'}`;
    }
    case 'written':
      return `fsync write ${event.seq}`;
    case 'tick':
    case 'cancel':
    case 'forwardCancelled':
    case 'forwardLost':
    case 'forwarderLost':
    case 'streamEnded':
    case 'unreachable':
    case 'probed':
    case 'hello':
    case 'cutWritten':
    case 'chunksEnded':
    case 'staged':
    case 'snapshotSent':
    case 'diskFree':
    case 'watch':
    case 'watchReady':
    case 'watchClosed':
    case 'stop':
      return JSON.stringify(event);
  }
}

function textOf(message: Message): string {
  return messageText(message, contentText);
}

function contentText(entry: Entry): string {
  if (entry.kind !== 'command') return '';
  const command = commandCodec.decode(entry.payload);
  const domains =
    'domain' in command ? [command.domain] : 'leases' in command ? command.leases.map((each) => each.domain) : [];
  return [command.type, ...domains].join('-');
}
