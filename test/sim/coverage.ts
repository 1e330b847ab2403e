/** How often something happened. Faults and rare paths count themselves here; a run prints it, and a zero is a failure. */
export class Coverage {
  readonly counts = new Map<string, number>();

  /** `name` happened. Names are short lower-case phrases, one for each path: `snapshot installed`. */
  count(name: string, times = 1): void {
    this.counts.set(name, (this.counts.get(name) ?? 0) + times);
  }
}
