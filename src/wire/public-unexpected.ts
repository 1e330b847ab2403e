/** Thrown when a response is not what a Fencepost node says: another service answered, or a broken one. */
export class UnexpectedResponse extends Error {
  override readonly name = 'UnexpectedResponse';

  /** `field` by its name in the program; `fault` says what it is. */
  constructor(field: string, fault: string, options?: ErrorOptions) {
    super(`${field} ${fault}`, options);
  }
}
