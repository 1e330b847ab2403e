/**
 * Assertions stay on in production: in a lease service a stopped node is cheap and a wrong node is not.
 * A failed assertion is a defect of Fencepost, never a fault of a user; it ends the process.
 */

/** Thrown by {@link assert}. Whoever catches it may only log it and end the process. */
export class AssertionFailed extends Error {
  override readonly name = 'AssertionFailed';
}

/** Throws {@link AssertionFailed} unless `condition` holds. `message` says what should have held, with the values. */
export function assert(condition: boolean, message: string): asserts condition {
  if (!condition) throw new AssertionFailed(message);
}

/** Marks the branch that the type checker has shown to be unreachable. */
export function unreachable(value: never): never {
  throw new AssertionFailed(`unreachable value: ${String(value)}`);
}
