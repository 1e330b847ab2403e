/** Members, configurations and positions of snapshots ↔ their messages. */
import type { Configuration, Member, SnapshotMeta } from '../raft/types.js';
import { checkFormat, directoryId, integer, nodeId, part, parts } from './fields.js';
import { uint64 } from './numbers.js';
import { decodeFields, encodeFields, FORMAT, messageType } from './proto.js';
import type { Fields } from './proto.js';

const CONFIGURATION = messageType('Configuration');

/** The payload of a configuration entry. */
export function encodeConfiguration(configuration: Configuration): Uint8Array {
  return encodeFields(CONFIGURATION, configurationFields(configuration));
}

/** The configuration in the payload of an entry. Throws `CorruptBytes`. */
export function decodeConfiguration(bytes: Uint8Array): Configuration {
  return readConfiguration(decodeFields(CONFIGURATION, bytes, 'configuration'));
}

/** As a part of another message. */
export function configurationFields(configuration: Configuration): Fields {
  return {
    format: FORMAT,
    voters: configuration.voters.map(memberFields),
    outgoing: configuration.outgoing.map(memberFields),
    learners: configuration.learners.map(memberFields),
  };
}

/** From a part of another message. */
export function readConfiguration(fields: Fields): Configuration {
  const what = 'configuration';
  checkFormat(fields, what);
  return {
    voters: parts(fields, 'voters', what).map((member) => readMember(member, what)),
    outgoing: parts(fields, 'outgoing', what).map((member) => readMember(member, what)),
    learners: parts(fields, 'learners', what).map((member) => readMember(member, what)),
  };
}

/** The pair, as a part of another message. */
export function memberFields(member: Member): Fields {
  return { nodeId: member.node, directoryId: member.directory };
}

/** The pair, from a part of another message. */
export function readMember(fields: Fields, what: string): Member {
  return { node: nodeId(fields, 'nodeId', what), directory: directoryId(fields, 'directoryId', what) };
}

/** What a snapshot stands for, as a part of another message. */
export function metaFields(meta: SnapshotMeta): Fields {
  return {
    index: uint64(meta.index, 'index'),
    term: uint64(meta.term, 'term'),
    configuration: configurationFields(meta.configuration),
    configurationIndex: uint64(meta.configurationIndex, 'configurationIndex'),
  };
}

/** What a snapshot stands for, from a part of another message. */
export function readMeta(fields: Fields, what: string): SnapshotMeta {
  return {
    index: integer(fields, 'index', what),
    term: integer(fields, 'term', what),
    configuration: readConfiguration(part(fields, 'configuration', what)),
    configurationIndex: integer(fields, 'configurationIndex', what),
  };
}
