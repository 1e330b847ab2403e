/** The bytes of the commands that most entries carry (`record.proto`, Command); the others are in `command.ts`. */
import type { Command } from '../lease/commands.js';
import { wellFormed } from './fields.js';
import { FieldWriter } from './field-writer.js';
import { writeMetadata } from './metadata.js';
import { uint32, uint64 } from './numbers.js';
import { FORMAT } from './proto.js';

type Of<T extends Command['type']> = Extract<Command, { readonly type: T }>;

const writer = new FieldWriter();

/** As {@link encodeCommand} says. */
export function acquireBytes(command: Of<'acquire'>): Uint8Array {
  writer.clear();
  writer.integer(1, FORMAT);
  const body = writer.begin(2);
  writer.text(1, command.domain);
  writer.text(2, command.requestId);
  writer.text(3, wellFormed(command.holder, 'holder'));
  writer.integer(4, uint32(command.ttlMs, 'ttlMs'));
  writeMetadata(writer, 5, command.metadata);
  writer.integer(6, uint64(command.seenRevision, 'seenRevision'));
  writer.integer(7, uint64(command.atUnixMs, 'atUnixMs'));
  writer.text(8, wellFormed(command.owner, 'owner'));
  writer.integer(9, uint32(command.waitMs, 'waitMs'));
  writer.integer(10, uint32(command.coolDownMs, 'coolDownMs'));
  writer.integer(11, uint32(command.slots, 'slots'));
  writer.text(12, wellFormed(command.principal, 'principal'));
  writer.end(body);
  return writer.take();
}

/** As {@link encodeCommand} says. */
export function releaseBytes(command: Of<'release'>): Uint8Array {
  writer.clear();
  writer.integer(1, FORMAT);
  const body = writer.begin(4);
  writer.text(1, command.domain);
  writer.integer(2, uint64(command.token, 'token'));
  writer.text(3, wellFormed(command.owner, 'owner'));
  for (const requestId of command.detached) writer.text(4, requestId);
  writer.integer(5, uint64(command.atUnixMs, 'atUnixMs'));
  writer.end(body);
  return writer.take();
}
