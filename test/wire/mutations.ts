/**
 * Valid bytes made wrong: blindly, as a bad disk or network would, and along the structure of a protobuf message, as a
 * newer, older or foreign implementation would. All chance is from the `Random` given, so a failing seed says it all.
 */
import protobuf from 'protobufjs';
import { nextInt, nextUint32 } from '../../src/base/random.js';
import type { Random } from '../../src/base/random.js';

const VARINT = 0;
const FIXED_64 = 1;
const LENGTH_DELIMITED = 2;
const START_GROUP = 3;
const FIXED_32 = 5;

/** One field on the wire: what follows its tag, for length-delimited ones without the length. */
interface WireField {
  readonly id: number;
  readonly wire: number;
  readonly body: Uint8Array;
}

/** Varints at the edges of what numbers hold: 0, 1, 2^31, 2^32 − 1, 2^32, 2^53 − 1, 2^53, 2^63, 2^64 − 1, an unended one. */
const EDGES: readonly (readonly number[])[] = [
  [0],
  [1],
  [0x80, 0x80, 0x80, 0x80, 0x08],
  [0xff, 0xff, 0xff, 0xff, 0x0f],
  [0x80, 0x80, 0x80, 0x80, 0x10],
  [0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x0f],
  [0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x10],
  [0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x01],
  [0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01],
  [0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff],
];

/** Texts that are special somewhere: in JavaScript, in UTF-8, in the rules for names. */
const TEXTS: readonly (string | readonly number[])[] = [
  '',
  '__proto__',
  'constructor',
  'a//b',
  '#',
  '\ufffd',
  '\u0000',
  'é'.repeat(128),
  'x'.repeat(4_097),
  '0'.repeat(32),
  '123E4567-E89B-42D3-A456-426614174000',
  [0xff],
  [0xc0, 0x80],
  [0xed, 0xa0, 0x80],
  [0xf4, 0x90, 0x80, 0x80],
];

/** `bytes` with one thing wrong; `other` is valid too and gives parts for splices. */
export function blindly(bytes: Uint8Array, other: Uint8Array, random: Random): Uint8Array {
  const at = nextInt(random, 0, bytes.length);
  const end = nextInt(random, at, Math.min(bytes.length, at + 20));
  const otherAt = nextInt(random, 0, other.length);
  switch (nextInt(random, 0, 7)) {
    case 0:
      return joined(bytes.subarray(0, at), Uint8Array.of(nextUint32(random)), bytes.subarray(at + 1));
    case 1:
      return bytes.subarray(0, at);
    case 2:
      return joined(bytes.subarray(0, at), noise(random), bytes.subarray(at));
    case 3:
      return joined(bytes.subarray(0, at), bytes.subarray(end));
    case 4:
      return joined(bytes.subarray(0, end), bytes.subarray(at));
    case 5:
      return joined(bytes.subarray(0, at), other.subarray(otherAt));
    case 6:
      return joined(bytes, other);
    default:
      return joined(bytes.subarray(0, at), edge(random), bytes.subarray(at));
  }
}

/** The message `bytes` with one field, at any depth, changed, dropped, doubled, moved or added. */
export function structurally(bytes: Uint8Array, random: Random): Uint8Array {
  const fields = fieldsOf(bytes);
  const at = nextInt(random, 0, (fields?.length ?? 0) - 1);
  const field = fields?.[at];
  if (fields === undefined || field === undefined) return encodeField(unknownField(random));
  const inner = field.wire === LENGTH_DELIMITED && nextInt(random, 0, 2) > 0 ? fieldsOf(field.body) : undefined;
  if (inner !== undefined && inner.length > 0) {
    return encode(fields.with(at, { ...field, body: structurally(field.body, random) }));
  }
  return encode(changed(fields, at, field, random));
}

/** Deep in groups or in messages within messages: what a recursive reader could fall over. */
export function deep(depth: number): readonly Uint8Array[] {
  // From the inside: each head says how much lies behind it.
  const heads: Uint8Array[] = [];
  for (let level = 0, length = 0; level < depth; level++) {
    const head = protobuf.Writer.create().uint32(((1 + (level % 3)) << 3) | LENGTH_DELIMITED);
    const bytes = head.uint32(length).finish();
    heads.push(bytes);
    length += bytes.length;
  }
  return [new Uint8Array(depth).fill((1 << 3) | START_GROUP), joined(...heads.reverse())];
}

function changed(fields: readonly WireField[], at: number, field: WireField, random: Random): readonly WireField[] {
  switch (nextInt(random, 0, 6)) {
    case 0:
      return fields.toSpliced(at, 1);
    case 1:
      return fields.toSpliced(nextInt(random, 0, fields.length), 0, field);
    case 2:
      return fields.toSpliced(nextInt(random, 0, fields.length), 0, unknownField(random));
    case 3:
      return fields.with(at, { ...field, id: nextInt(random, 1, 20) });
    case 4:
      return fields.toReversed();
    default:
      return fields.with(at, { ...field, body: special(field.wire, random) });
  }
}

function special(wire: number, random: Random): Uint8Array {
  if (wire === VARINT) return edge(random);
  if (wire !== LENGTH_DELIMITED) return Uint8Array.from({ length: wire === FIXED_32 ? 4 : 8 }, () => 0xff);
  const text = TEXTS[nextInt(random, 0, TEXTS.length - 1)] ?? '';
  return typeof text === 'string' ? Uint8Array.from(Buffer.from(text)) : Uint8Array.from(text);
}

/** A field of a number that no file has, or that one may have, of any wire type. */
function unknownField(random: Random): WireField {
  const wires = [VARINT, FIXED_64, LENGTH_DELIMITED, FIXED_32];
  const wire = wires[nextInt(random, 0, wires.length - 1)] ?? VARINT;
  const id = [1, 2, 3, 15, 16, 100, 19_000, 2 ** 29 - 1][nextInt(random, 0, 7)] ?? 1;
  return { id, wire, body: special(wire, random) };
}

/** The fields of a message; undefined for bytes that are none. */
function fieldsOf(bytes: Uint8Array): readonly WireField[] | undefined {
  const reader = protobuf.Reader.create(bytes);
  const fields: WireField[] = [];
  try {
    while (reader.pos < reader.len) {
      const tag = reader.uint32();
      const start = reader.pos;
      const [id, wire] = [tag >>> 3, tag & 7];
      if (id === 0) return undefined;
      if (wire === LENGTH_DELIMITED) fields.push({ id, wire, body: reader.bytes() });
      else {
        reader.skipType(wire);
        fields.push({ id, wire, body: bytes.subarray(start, reader.pos) });
      }
    }
  } catch {
    return undefined;
  }
  return fields;
}

function encode(fields: readonly WireField[]): Uint8Array {
  return joined(...fields.map(encodeField));
}

function encodeField({ id, wire, body }: WireField): Uint8Array {
  const head = protobuf.Writer.create().uint32(((id << 3) | wire) >>> 0);
  return joined(wire === LENGTH_DELIMITED ? head.uint32(body.length).finish() : head.finish(), body);
}

function edge(random: Random): Uint8Array {
  return Uint8Array.from(EDGES[nextInt(random, 0, EDGES.length - 1)] ?? []);
}

function noise(random: Random): Uint8Array {
  return Uint8Array.from({ length: nextInt(random, 1, 8) }, () => nextUint32(random));
}

function joined(...parts: readonly Uint8Array[]): Uint8Array {
  return Uint8Array.from(Buffer.concat(parts));
}
