/**
 * The message types of `proto/fencepost/internal/v1`, read once when the process starts. The `.proto` files are the
 * schema; the files beside this one map messages to the types that the pure rooms own.
 */
import { isAbsolute, join } from 'node:path';
import protobuf from 'protobufjs';
import { CorruptBytes } from './corrupt.js';
import { PROTO_DIRECTORY } from './public-directory.js';

/** The format that this version writes. Readers refuse a greater one: it says "made by a newer version". */
export const FORMAT = 1;

/** A decoded message before its parts are checked; read it with `fields.ts` only. */
export type Fields = Readonly<Record<string, unknown>>;

const root = new protobuf.Root();
root.resolvePath = (_origin, target) => (isAbsolute(target) ? target : join(PROTO_DIRECTORY, target));
root.loadSync(['fencepost/internal/v1/record.proto', 'fencepost/internal/v1/peer.proto']);
root.resolveAll();

/** The type of one internal message, by its short name. Throws for a name that the files do not have. */
export function messageType(name: string): protobuf.Type {
  return root.lookupType(`fencepost.internal.v1.${name}`);
}

/** An enumeration's numbers by name. Throws for a name that the files do not have. */
export function enumNumbers(name: string): Readonly<Record<string, number>> {
  return root.lookupEnum(`fencepost.internal.v1.${name}`).values;
}

/** The bytes of `fields`. Integers are given as plain numbers that `numbers.ts` has checked. */
export function encodeFields(type: protobuf.Type, fields: Fields): Uint8Array {
  return plain(type.encode(fields).finish());
}

/** The parts of a message, unchecked. Throws {@link CorruptBytes} naming `what` when the bytes are no message at all. */
export function decodeFields(type: protobuf.Type, bytes: Uint8Array, what: string): Fields {
  try {
    // A decoded message is a plain object with default values on its prototype.
    return type.decode(plain(bytes)) as unknown as Fields;
  } catch (error) {
    throw new CorruptBytes(what, error instanceof Error ? error.message : 'cannot be read', { cause: error });
  }
}

/** The same bytes without the class `Buffer`: its `slice` shares memory, and the pure rooms know no such thing. */
function plain(bytes: Uint8Array): Uint8Array {
  return bytes.constructor === Uint8Array ? bytes : new Uint8Array(bytes.buffer, bytes.byteOffset, bytes.byteLength);
}
