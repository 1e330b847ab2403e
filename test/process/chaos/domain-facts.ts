/** What is known of one domain of a chaos run, and what cannot be true of it. */

/** How one lease was seen. All times are those of the one clock. */
export interface LeaseFacts {
  readonly token: number;
  /** Who it was granted to: a request id, or a handle of the client library. */
  readonly holder: string;
  /** The first call that may have granted it was sent here … */
  readonly askedAt: number;
  /** … and one had answered that it was granted by here. */
  grantedBy: number;
  /** Its holder had every right to believe in it until here at least. */
  heldUntil: number;
  /** If it expires, nobody is granted the domain for so long, in milliseconds. */
  coolDownMs: number;
  /** From here on its holder may have given it back. */
  givenBackFrom: number;
  /** By here the cluster had confirmed that it was given back. */
  givenBackBy: number;
}

/** What an answer said of a domain at some moment of the call. */
export interface Sight {
  readonly from: number;
  readonly to: number;
  /** The lease that it is about … */
  readonly token: number;
  /** … was live, or was not. */
  readonly live: boolean;
  /** For people. */
  readonly how: string;
}

/** A write that the resource took. */
export interface Write {
  readonly from: number;
  readonly to: number;
  readonly token: number;
}

/** See the head of the file. */
export class DomainFacts {
  readonly domain: string;
  readonly leases = new Map<number, LeaseFacts>();
  readonly sights: Sight[] = [];
  readonly writes: Write[] = [];
  /** By request id: the tokens that it was told. */
  readonly told = new Map<string, Set<number>>();
  /** By request id: by when its withdrawal was confirmed. */
  readonly withdrawnBy = new Map<string, number>();
  /** Told at once, without waiting for {@link impossible}. */
  readonly contradictions: string[] = [];
  lastAt = 0;

  constructor(domain: string) {
    this.domain = domain;
  }

  /** An answer to a call of `holder`, sent at `from`, said at `at` that it has `token`. */
  granted(token: number, holder: string, from: number, at: number): LeaseFacts {
    const known = this.leases.get(token);
    if (known === undefined) {
      const never = { heldUntil: 0, coolDownMs: 0, givenBackFrom: Infinity, givenBackBy: Infinity };
      const lease = { token, holder, askedAt: from, grantedBy: at, ...never };
      this.leases.set(token, lease);
      return lease;
    }
    if (known.holder !== holder)
      this.contradictions.push(`two holders of ${this.domain} have the token ${token}: ${known.holder} and ${holder}`);
    known.grantedBy = Math.min(known.grantedBy, at);
    return known;
  }

  /** Everything that cannot be, as sentences. Cheap; may be asked again when more is known. */
  impossible(): string[] {
    return [
      ...this.contradictions,
      ...this.#order(),
      ...this.#exclusion(),
      ...this.#sights(),
      ...this.#once(),
      ...this.#writes(),
    ];
  }

  /** Contract 1: of two grants the later has the greater token. */
  *#order(): Iterable<string> {
    let first: LeaseFacts | undefined;
    for (const lease of this.#newestFirst()) {
      if (first !== undefined && first.grantedBy < lease.askedAt)
        yield `${this.domain}: ${lease.token} was asked for after the greater token ${first.token} had been granted`;
      if (first === undefined || lease.grantedBy < first.grantedBy) first = lease;
    }
  }

  /** Contracts 2 and 3: a holder's safe time is over before the next is granted anything, and so is a cool-down. */
  *#exclusion(): Iterable<string> {
    let next: LeaseFacts | undefined;
    for (const lease of this.#newestFirst()) {
      const safe = Math.min(lease.heldUntil, lease.givenBackFrom);
      if (next !== undefined && next.grantedBy < safe)
        yield `${this.domain}: ${next.token} was granted before the safe time of ${lease.token} (${lease.holder}) ended`;
      // The clocks of leader and judge are the same; what is left is the time between a tick and the next.
      const closed = Math.min(lease.heldUntil + lease.coolDownMs, lease.givenBackFrom);
      if (next !== undefined && next.grantedBy >= safe && next.grantedBy < closed)
        yield `${this.domain}: ${next.token} was granted in the cool-down of ${lease.token} (${lease.holder})`;
      if (next === undefined || lease.grantedBy < next.grantedBy) next = lease;
    }
  }

  /** Contract 4: what was acknowledged is seen by everybody who asks later, until it is over; and not after that. */
  *#sights(): Iterable<string> {
    for (const { from, to, token, live, how } of this.sights) {
      const lease = this.leases.get(token);
      if (lease === undefined) continue;
      if (!live && lease.grantedBy <= from && to < Math.min(lease.heldUntil, lease.givenBackFrom))
        yield `${this.domain}: ${token} (${lease.holder}) was acknowledged and is gone before its safe time ended: ${how}`;
      if (live && lease.givenBackBy < from) yield `${this.domain}: ${token} was given back and is live again: ${how}`;
      if (!live) continue;
      for (const other of this.leases.values())
        if (other.token > token && other.grantedBy < from)
          yield `${this.domain}: ${token} is live after ${other.token} was granted: ${how}`;
    }
  }

  /** Contract 5: a request takes effect once. */
  *#once(): Iterable<string> {
    for (const [request, tokens] of this.told)
      if (tokens.size > 1) yield `${this.domain}: request ${request} was granted ${[...tokens].join(' and ')}`;
    for (const lease of this.leases.values()) {
      const by = this.withdrawnBy.get(lease.holder);
      if (by !== undefined && lease.askedAt > by)
        yield `${this.domain}: request ${lease.holder} was granted ${lease.token} after it had been withdrawn`;
    }
  }

  /** Contract 7: tokens never fall at the resource. */
  *#writes(): Iterable<string> {
    const byEnd = [...this.writes].sort((a, b) => a.to - b.to);
    const byStart = [...this.writes].sort((a, b) => a.from - b.from);
    let greatest = 0;
    let ended = 0;
    for (const write of byStart) {
      for (let done = byEnd[ended]; done !== undefined && done.to < write.from; done = byEnd[++ended])
        greatest = Math.max(greatest, done.token);
      if (write.token < greatest)
        yield `${this.domain}: the resource took a write of ${write.token} after one of ${greatest}`;
    }
  }

  #newestFirst(): LeaseFacts[] {
    return [...this.leases.values()].sort((a, b) => b.token - a.token);
  }
}
