/** `Watch` on the wire, for the server and the client: calls and news ↔ messages ↔ bytes. */
import type { Header } from '../base/api.js';
import { unreachable } from '../base/assert.js';
import { MAX_DOMAIN_BYTES } from '../base/domain.js';
import { ZERO_REVISION } from '../base/revision.js';
import type { Revision } from '../base/revision.js';
import { utf8Length } from '../base/utf8.js';
import type { ChangeView, WatchCall, WatchNews } from '../base/watch.js';
import { wireEnded, wireHeader, wireLease } from './public-answer.js';
import { streamMessages } from './public-messages.js';
import { isText } from './public-parse.js';
import { domain, readEnded, readHeader, readLease, revision } from './public-read.js';
import type { WireEvent, WireWatchRequest, WireWatchResponse } from './public-types.js';
import { UnexpectedResponse } from './public-unexpected.js';

/** One message of a watch. */
export interface WatchMessage {
  readonly header: Header;
  readonly news: WatchNews;
}

/** A message as a client reads it: without news when they are of a kind that this version does not know. */
export interface ReadWatchMessage {
  readonly header: Header;
  readonly news: WatchNews | undefined;
}

/** The method as grpc-js takes it, on both sides. */
export interface WatchMethod {
  readonly path: string;
  readonly requestStream: false;
  readonly responseStream: true;
  readonly requestSerialize: (call: WatchCall) => Buffer;
  /** Never throws: a request that cannot be read has no message, and {@link parseWatch} says so. */
  readonly requestDeserialize: (bytes: Buffer) => UnreadWatch;
  readonly responseSerialize: (message: WatchMessage) => Buffer;
  /** Throws `UnexpectedResponse`. */
  readonly responseDeserialize: (bytes: Buffer) => ReadWatchMessage;
}

/** A request that is not checked yet. */
export interface UnreadWatch {
  /** Undefined when the bytes were no such message. */
  readonly message: WireWatchRequest | undefined;
}

const messages = streamMessages<WireWatchRequest, WireWatchResponse>('LeaseService', 'Watch');

/** `fencepost.v1.LeaseService/Watch`. */
export const WATCH_METHOD: WatchMethod = {
  path: messages.path,
  requestStream: false,
  responseStream: true,
  requestSerialize: ({ prefix, startRevision }) =>
    messages.encodeRequest({ prefix, startRevision: BigInt(startRevision) }),
  requestDeserialize: (bytes) => {
    try {
      return { message: messages.decodeRequest(bytes) };
    } catch {
      return { message: undefined };
    }
  },
  responseSerialize: ({ header, news }) => messages.encodeResponse({ header: wireHeader(header), ...wireNews(news) }),
  responseDeserialize: (bytes) => {
    try {
      return readMessage(messages.decodeResponse(bytes));
    } catch (error) {
      if (error instanceof UnexpectedResponse) throw error;
      throw new UnexpectedResponse('the message', 'is none of a watch', { cause: error });
    }
  },
};

/** Checks a request: the call, or everything that is wrong with it. */
export function parseWatch({
  message,
}: UnreadWatch): { readonly ok: WatchCall } | { readonly faults: readonly string[] } {
  if (message === undefined) return { faults: ['the bytes are no request message of watch'] };
  const { prefix, startRevision } = message;
  const faults: string[] = [];
  // Longer than any name, and kept for as long as the watch.
  if (utf8Length(prefix) > MAX_DOMAIN_BYTES) {
    faults.push(`prefix has ${utf8Length(prefix)} bytes; at most ${MAX_DOMAIN_BYTES} are allowed`);
  }
  if (!isText(prefix)) faults.push('prefix is not well-formed UTF-8, or holds U+FFFD');
  if (startRevision < 0n || startRevision > Number.MAX_SAFE_INTEGER) {
    faults.push(`start_revision is ${startRevision.toString()}; it must be from 0 to 2^53 - 1`);
  }
  return faults.length > 0 ? { faults } : { ok: { prefix, startRevision: Number(startRevision) as Revision } };
}

function wireNews(news: WatchNews): Omit<WireWatchResponse, 'header'> {
  switch (news.type) {
    case 'events':
      return { events: { events: news.events.map(wireEvent) } };
    case 'progress':
      return { progress: {} };
    case 'compacted':
      return { compacted: { oldestRevision: BigInt(news.oldest) } };
  }
  return unreachable(news);
}

function wireEvent(change: ChangeView): WireEvent {
  const at = BigInt(change.revision);
  switch (change.type) {
    case 'granted':
      return { revision: at, granted: wireLease(change.lease) };
    case 'ended':
      return { revision: at, ended: wireEnded(change.ended) };
    case 'queueChanged': {
      const { domain: name, queueLength } = change;
      return { revision: at, queueChanged: { domain: name, queueLength } };
    }
  }
  return unreachable(change);
}

function readMessage({ header, events, progress, compacted }: WireWatchResponse): ReadWatchMessage {
  if (header === null) throw new UnexpectedResponse('header', 'is missing');
  const readNews = (): WatchNews | undefined => {
    if (events !== undefined) return { type: 'events', events: events.events.flatMap(readEvent) };
    if (progress !== undefined) return { type: 'progress' };
    if (compacted === undefined) return undefined;
    return { type: 'compacted', oldest: positive('oldestRevision', compacted.oldestRevision) };
  };
  return { header: readHeader(header), news: readNews() };
}

/** A change of a kind that a newer server knows is left out: what this version tells of is complete without it. */
function readEvent({ revision: at, granted, ended, queueChanged }: WireEvent): ChangeView[] {
  const of = positive('revision', at);
  if (granted !== undefined) return [{ revision: of, type: 'granted', lease: readLease(granted) }];
  if (ended !== undefined) {
    const read = readEnded(ended);
    const { lease } = read;
    if (lease === undefined) throw new UnexpectedResponse('ended.lease', 'is missing');
    return [{ revision: of, type: 'ended', ended: { ...read, lease } }];
  }
  if (queueChanged === undefined) return [];
  const { domain: name, queueLength } = queueChanged;
  return [{ revision: of, type: 'queueChanged', domain: domain('domain', name), queueLength }];
}

function positive(field: string, value: bigint): Revision {
  const of = revision(field, value);
  if (of === ZERO_REVISION) throw new UnexpectedResponse(field, 'is 0');
  return of;
}
