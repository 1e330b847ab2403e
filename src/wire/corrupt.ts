/**
 * Thrown by every decoder of this room for bytes that no encoder of this or an older version made. The message says
 * what was being read, which part is wrong and why. Nothing half-decoded is ever returned beside it.
 */
export class CorruptBytes extends Error {
  override readonly name = 'CorruptBytes';
  /** What was being read, e.g. `command acquire`. */
  readonly what: string;

  constructor(what: string, fault: string, options?: ErrorOptions) {
    super(`${what}: ${fault}`, options);
    this.what = what;
  }
}
