/**
 * Freezes what members hand to each other: delivery in memory shares objects, and a core that wrote to a received
 * message would seem to work here and not over a wire.
 */
export function deepFreeze<T>(value: T): T {
  if (typeof value !== 'object' || value === null || ArrayBuffer.isView(value) || Object.isFrozen(value)) return value;
  for (const part of Object.values(value)) deepFreeze(part);
  return Object.freeze(value);
}
