/**
 * IDENTITY: whose directory this is. A text that people can read, with a checksum in its last line; it is compared
 * byte by byte with what this version would write, so nothing in it can be changed unnoticed.
 */
import { crc32c } from '../base/digest.js';
import { isHexId, isNodeId, type DirectoryId, type Incarnation, type NodeId } from '../base/ids.js';
import { encodeUtf8 } from '../base/utf8.js';
import { CorruptBytes } from './corrupt.js';

const FORMAT = 1;
const decoder = new TextDecoder('utf-8', { fatal: true });

/** A directory is `new` until database, Genesis and MARK stand; only a `member` demands them. */
export type Identity =
  | { readonly type: 'new'; readonly cluster: string; readonly node: NodeId; readonly directory: DirectoryId }
  | {
      readonly type: 'member';
      readonly cluster: string;
      readonly node: NodeId;
      readonly directory: DirectoryId;
      readonly incarnation: Incarnation;
    };

/** The file's bytes. */
export function encodeIdentity(identity: Identity): Uint8Array {
  const lines = [
    `fencepost-identity ${FORMAT}`,
    `cluster ${JSON.stringify(identity.cluster)}`,
    `node ${identity.node}`,
    `directory ${identity.directory}`,
    identity.type === 'member' ? `member ${identity.incarnation}` : 'new',
    '',
  ];
  const body = lines.join('\n');
  return encodeUtf8(`${body}checksum ${crc32c(encodeUtf8(body)).toString(16).padStart(8, '0')}\n`);
}

/** The inverse of {@link encodeIdentity}. */
export function decodeIdentity(bytes: Uint8Array): Identity {
  const identity = parse(bytes);
  if (identity === undefined || !sameBytes(encodeIdentity(identity), bytes)) {
    throw new CorruptBytes('IDENTITY', `is damaged, or not of format ${FORMAT}`);
  }
  return identity;
}

function parse(bytes: Uint8Array): Identity | undefined {
  let cluster: unknown;
  let lines: string[];
  try {
    lines = decoder.decode(bytes).split('\n');
    cluster = JSON.parse(lines[1]?.replace(/^cluster /, '') ?? '');
  } catch {
    return undefined;
  }
  const node = lines[2]?.replace(/^node /, '') ?? '';
  const directory = lines[3]?.replace(/^directory /, '') ?? '';
  const incarnation = lines[4]?.replace(/^member /, '') ?? '';
  if (typeof cluster !== 'string' || !isNodeId(node) || !isHexId(directory)) return undefined;
  const common = { cluster, node, directory: directory as DirectoryId };
  if (incarnation === 'new') return { type: 'new', ...common };
  return isHexId(incarnation) ? { type: 'member', ...common, incarnation: incarnation as Incarnation } : undefined;
}

function sameBytes(left: Uint8Array, right: Uint8Array): boolean {
  return left.length === right.length && left.every((byte, i) => byte === right[i]);
}
