import type { Metadata } from '../base/api.js';
import { CorruptBytes } from './corrupt.js';
import { parts, text, wellFormed } from './fields.js';
import type { FieldWriter } from './field-writer.js';
import type { Fields } from './proto.js';

/** Pairs as the internal messages carry them. */
export function metadataFields(metadata: Metadata): readonly Fields[] {
  return metadata.map(([key, value]) => ({
    key: wellFormed(key, 'metadata key'),
    value: wellFormed(value, 'metadata value'),
  }));
}

/** The same, by hand. */
export function writeMetadata(writer: FieldWriter, field: number, metadata: Metadata): void {
  for (const [key, value] of metadata) {
    const pair = writer.begin(field);
    writer.text(1, wellFormed(key, 'metadata key'));
    writer.text(2, wellFormed(value, 'metadata value'));
    writer.end(pair);
  }
}

/** Metadata sorted by key, keys unique; anything else is refused, because the order is part of the state. */
export function readMetadata(fields: Fields, what: string): Metadata {
  let before: string | undefined;
  return parts(fields, 'metadata', what).map((pair) => {
    const key = text(pair, 'key', what);
    if (before !== undefined && key <= before) throw new CorruptBytes(what, 'metadata is not sorted by key');
    before = key;
    return [key, text(pair, 'value', what)] as const;
  });
}
