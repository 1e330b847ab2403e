/** Commands of the state machine ↔ the payload of a log entry (`record.proto`, Command). */
import { unreachable } from '../base/assert.js';
import type { Command, LeaseKey, Passing, Stamped } from '../lease/commands.js';
import type { CommandCodec } from '../replica/ports.js';
import { acquireBytes, releaseBytes } from './command-bytes.js';
import { CorruptBytes } from './corrupt.js';
import {
  checkFormat,
  domain,
  integer,
  leasedDomain,
  name,
  part,
  parts,
  positive,
  requestId,
  requestIds,
  revision,
  slotCount,
  text,
  token,
  variant,
  wellFormed,
} from './fields.js';
import { readMetadata } from './metadata.js';
import { uint64 } from './numbers.js';
import { decodeFields, encodeFields, FORMAT, messageType } from './proto.js';
import type { Fields } from './proto.js';
import { limitsChangeFields, readLimitsChange } from './state-limits.js';

const COMMAND = messageType('Command');

/** The bytes of a command. A number outside its range or ill-formed text is a failed assertion. */
export function encodeCommand(command: Command): Uint8Array {
  if (command.type === 'acquire') return acquireBytes(command);
  if (command.type === 'release') return releaseBytes(command);
  // The members of the oneof have the names of the types.
  return encodeFields(COMMAND, { format: FORMAT, [command.type]: bodyOf(command) });
}

/** The command in `bytes`. Throws {@link CorruptBytes}. */
export function decodeCommand(bytes: Uint8Array): Command {
  const fields = decodeFields(COMMAND, bytes, 'command');
  checkFormat(fields, 'command');
  const type = variant(fields, 'command', 'command');
  const what = `command ${type}`;
  const body = part(fields, type, what);
  switch (type) {
    case 'acquire':
      return {
        type,
        domain: domain(body, 'domain', what),
        requestId: requestId(body, 'requestId', what),
        holder: name(body, 'holder', what),
        ttlMs: positive(body, 'ttlMs', what),
        metadata: readMetadata(body, what),
        seenRevision: revision(body, 'seenRevision', what),
        atUnixMs: integer(body, 'atUnixMs', what),
        owner: text(body, 'owner', what),
        waitMs: integer(body, 'waitMs', what),
        coolDownMs: integer(body, 'coolDownMs', what),
        slots: slotCount(body, 'slots', what),
        principal: name(body, 'principal', what),
      };
    case 'withdraw':
      return {
        type,
        domain: domain(body, 'domain', what),
        requestId: requestId(body, 'requestId', what),
        owner: text(body, 'owner', what),
        ...readFreeing(body, what),
      };
    case 'release':
      return { type, ...readKey(body, what), owner: text(body, 'owner', what), ...readFreeing(body, what) };
    case 'forceRelease':
      return {
        type,
        ...readKey(body, what),
        note: text(body, 'note', what),
        by: text(body, 'by', what),
        ...readFreeing(body, what),
      };
    case 'limits':
      return { type, change: readLimitsChange(part(body, 'change', what), what), by: text(body, 'by', what) };
    case 'expire':
      return {
        type,
        term: integer(body, 'term', what),
        leases: parts(body, 'leases', what).map((lease) => ({
          ...readKey(lease, what),
          version: integer(lease, 'version', what),
          detached: requestIds(lease, 'detached', what),
        })),
        atUnixMs: integer(body, 'atUnixMs', what),
      };
    case 'endWait':
      return {
        type,
        term: integer(body, 'term', what),
        waits: parts(body, 'waits', what).map((wait) => ({
          requestId: requestId(wait, 'requestId', what),
          detached: requestIds(wait, 'detached', what),
        })),
        atUnixMs: integer(body, 'atUnixMs', what),
      };
    case 'endCoolDown':
      return {
        type,
        term: integer(body, 'term', what),
        domains: parts(body, 'domains', what).map((closed) => ({
          domain: leasedDomain(closed, 'domain', what),
          since: token(closed, 'since', what),
          detached: requestIds(closed, 'detached', what),
        })),
        atUnixMs: integer(body, 'atUnixMs', what),
      };
    case 'checkpoint':
      return {
        type,
        leases: parts(body, 'leases', what).map((lease) => ({
          ...readKey(lease, what),
          leftMs: integer(lease, 'leftMs', what),
        })),
      };
    case 'void':
      return { type, leases: parts(body, 'leases', what).map((lease) => readKey(lease, what)) };
    case 'endHold':
      return { type, term: integer(body, 'term', what) };
    default:
      throw new CorruptBytes(what, 'is of a kind that this version does not know');
  }
}

/** Both directions, for the replica. */
export const commandCodec: CommandCodec = { encode: encodeCommand, decode: decodeCommand };

function bodyOf(command: Exclude<Command, { readonly type: 'acquire' | 'release' }>): Fields {
  switch (command.type) {
    case 'withdraw':
      return {
        domain: command.domain,
        requestId: command.requestId,
        owner: wellFormed(command.owner, 'owner'),
        ...freeingOf(command),
      };
    case 'forceRelease':
      return {
        ...keyOf(command),
        note: wellFormed(command.note, 'note'),
        by: wellFormed(command.by, 'by'),
        ...freeingOf(command),
      };
    case 'limits':
      return { change: limitsChangeFields(command.change), by: wellFormed(command.by, 'by') };
    case 'expire':
      return {
        term: uint64(command.term, 'term'),
        leases: command.leases.map(({ domain: ended, token: granted, version, detached }) => ({
          domain: ended,
          token: uint64(granted, 'token'),
          version: uint64(version, 'version'),
          detached,
        })),
        atUnixMs: uint64(command.atUnixMs, 'atUnixMs'),
      };
    case 'endWait':
      return {
        term: uint64(command.term, 'term'),
        waits: command.waits,
        atUnixMs: uint64(command.atUnixMs, 'atUnixMs'),
      };
    case 'endCoolDown':
      return {
        term: uint64(command.term, 'term'),
        domains: command.domains.map(({ domain: closed, since, detached }) => ({
          domain: closed,
          since: uint64(since, 'since'),
          detached,
        })),
        atUnixMs: uint64(command.atUnixMs, 'atUnixMs'),
      };
    case 'checkpoint':
      return { leases: command.leases.map((lease) => ({ ...keyOf(lease), leftMs: uint64(lease.leftMs, 'leftMs') })) };
    case 'void':
      return { leases: command.leases.map(keyOf) };
    case 'endHold':
      return { term: uint64(command.term, 'term') };
  }
  return unreachable(command);
}

function keyOf(lease: LeaseKey): Fields {
  return { domain: lease.domain, token: uint64(lease.token, 'token') };
}

function readKey(fields: Fields, what: string): LeaseKey {
  return { domain: leasedDomain(fields, 'domain', what), token: token(fields, 'token', what) };
}

/** What every client's command that may free a domain carries. */
function freeingOf(command: Passing & Stamped): Fields {
  return { detached: command.detached, atUnixMs: uint64(command.atUnixMs, 'atUnixMs') };
}

function readFreeing(fields: Fields, what: string): Passing & Stamped {
  return { detached: requestIds(fields, 'detached', what), atUnixMs: integer(fields, 'atUnixMs', what) };
}
