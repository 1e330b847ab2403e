/** The record that begins a history ↔ its message (`record.proto`, Genesis). */
import type { Revision } from '../base/revision.js';
import type { Genesis } from '../replica/types.js';
import { memberFields, readMember } from './configuration.js';
import { CorruptBytes } from './corrupt.js';
import { checkFormat, incarnation, integer, name, part, parts, positive, text, wellFormed } from './fields.js';
import { uint64 } from './numbers.js';
import { decodeFields, encodeFields, FORMAT, messageType } from './proto.js';
import type { Fields } from './proto.js';
import { limitsFields, readLimits } from './state-limits.js';

const GENESIS = messageType('Genesis');

/** The bytes of the record; equal records have equal bytes. */
export function encodeGenesis(genesis: Genesis): Uint8Array {
  return encodeFields(GENESIS, genesisFields(genesis));
}

/** Throws {@link CorruptBytes}. */
export function decodeGenesis(bytes: Uint8Array): Genesis {
  return readGenesis(decodeFields(GENESIS, bytes, 'genesis'));
}

/** As a part of another message. */
export function genesisFields(genesis: Genesis): Fields {
  return {
    format: FORMAT,
    incarnation: genesis.incarnation,
    cluster: wellFormed(genesis.cluster, 'cluster'),
    base: uint64(genesis.history.base, 'base'),
    start: uint64(genesis.history.start, 'start'),
    startTerm: uint64(genesis.startTerm, 'startTerm'),
    holdMs: uint64(genesis.holdMs, 'holdMs'),
    limits: limitsFields(genesis.limits),
    members: genesis.members.map(memberFields),
    stateDigest: wellFormed(genesis.stateDigest, 'stateDigest'),
  };
}

/** From a part of another message. Members must be there, sorted by node id, each once. */
export function readGenesis(fields: Fields): Genesis {
  const what = 'genesis';
  checkFormat(fields, what);
  const members = parts(fields, 'members', what).map((member) => readMember(member, what));
  if (members.length === 0) throw new CorruptBytes(what, 'names no members');
  let before = '';
  for (const { node } of members) {
    if (node <= before) throw new CorruptBytes(what, 'members are not sorted by node id');
    before = node;
  }
  return {
    incarnation: incarnation(fields, 'incarnation', what),
    cluster: name(fields, 'cluster', what),
    history: {
      base: positive(fields, 'base', what) as Revision,
      start: integer(fields, 'start', what),
    },
    startTerm: integer(fields, 'startTerm', what),
    holdMs: integer(fields, 'holdMs', what),
    limits: readLimits(part(fields, 'limits', what), what),
    members,
    stateDigest: text(fields, 'stateDigest', what),
  };
}
