/**
 * The frames of the streams between nodes (`peer.proto`: ControlRequest, AppendRequest, ForwardRequest and so on), as
 * an outer shell whose parts stay bytes: a frame carries many parts, each with a codec of its own.
 *
 * All frames have one shape: field 1 is a Hello, field 2 a repeated message (or the chunk), field 3 repeated numbers.
 * Encoded frames put one behind the other are the frame with the parts of all, as for every protobuf message.
 */
import protobuf from 'protobufjs';
import { CorruptBytes } from './corrupt.js';
import { fromWire } from './numbers.js';

const HELLO = 1;
const PART = 2;
const NUMBER = 3;
const VARINT = 0;
const LENGTH_DELIMITED = 2;

/** A frame taken apart; each part is a view into the frame's bytes. */
export interface Frame {
  /** An encoded Hello; the last one, should there be several. */
  readonly hello: Uint8Array | undefined;
  readonly parts: readonly Uint8Array[];
  /** ForwardRequest: ids of cancelled calls. */
  readonly numbers: readonly number[];
}

/** A frame that carries an encoded Hello only: the first one of a stream. */
export function helloFrame(hello: Uint8Array): Uint8Array {
  return delimited(HELLO, hello);
}

/** A frame with one part: an encoded CoreMessage, ForwardedCall, ForwardedResult or chunk. */
export function partFrame(part: Uint8Array): Uint8Array {
  return delimited(PART, part);
}

/** A ForwardRequest with one cancelled call. */
export function numberFrame(value: number): Uint8Array {
  return protobuf.Writer.create().uint32(tag(NUMBER, VARINT)).uint64(value).finish();
}

/** An InstallSnapshotResponse that ends a transfer. */
export function doneFrame(request: number): Uint8Array {
  return protobuf.Writer.create().uint32(tag(PART, VARINT)).uint64(request).finish();
}

/** Takes a frame apart; `what` names it in the {@link CorruptBytes} thrown for bytes that are none. Unknown fields are passed over. */
export function decodeFrame(bytes: Uint8Array, what: string): Frame {
  let hello: Uint8Array | undefined;
  const parts: Uint8Array[] = [];
  const numbers: number[] = [];
  read(bytes, what, (reader, field, wire) => {
    if (field === HELLO && wire === LENGTH_DELIMITED) hello = reader.bytes();
    else if (field === PART && wire === LENGTH_DELIMITED) parts.push(reader.bytes());
    else if (field === NUMBER && wire === VARINT) numbers.push(fromWire(reader.uint64(), what, 'number'));
    else if (field === NUMBER && wire === LENGTH_DELIMITED) {
      const end = reader.uint32() + reader.pos;
      while (reader.pos < end) numbers.push(fromWire(reader.uint64(), what, 'number'));
    } else if (field <= NUMBER) throw new CorruptBytes(what, `field ${field} has wire type ${wire}`);
    else reader.skipType(wire);
  });
  return { hello, parts, numbers };
}

/** Reads an InstallSnapshotResponse after the first: the request that is done, or undefined for an empty one. */
export function decodeDone(bytes: Uint8Array): number | undefined {
  const what = 'snapshot response';
  let request: number | undefined;
  read(bytes, what, (reader, field, wire) => {
    if (field === PART && wire === VARINT) request = fromWire(reader.uint64(), what, 'done_request');
    else reader.skipType(wire);
  });
  return request;
}

function read(
  bytes: Uint8Array,
  what: string,
  field: (reader: protobuf.Reader, id: number, wire: number) => void,
): void {
  const reader = protobuf.Reader.create(bytes);
  try {
    while (reader.pos < reader.len) {
      const head = reader.uint32();
      field(reader, head >>> 3, head & 7);
    }
  } catch (error) {
    if (error instanceof CorruptBytes) throw error;
    throw new CorruptBytes(what, error instanceof Error ? error.message : 'cannot be read', { cause: error });
  }
}

function delimited(field: number, bytes: Uint8Array): Uint8Array {
  return protobuf.Writer.create().uint32(tag(field, LENGTH_DELIMITED)).bytes(bytes).finish();
}

function tag(field: number, wire: number): number {
  return ((field << 3) | wire) >>> 0;
}
