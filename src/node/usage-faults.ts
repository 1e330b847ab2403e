/** A configuration or command line that cannot be used; exit code 2. The message lists every fault. */
export class UsageFaults extends Error {
  override readonly name = 'UsageFaults';
  readonly faults: readonly string[];

  constructor(what: string, faults: readonly string[]) {
    super(
      `${what}, ${faults.length} ${faults.length === 1 ? 'fault' : 'faults'}:\n${faults.map((fault) => `  - ${fault}`).join('\n')}`,
    );
    this.faults = faults;
  }
}
