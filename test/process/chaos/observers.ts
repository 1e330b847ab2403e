/**
 * What observers were told, against what clients were: every lease that was acknowledged to anybody is seen by every
 * observer to whom its revision is known, once, and in a domain one lease at a time.
 */
import type { Observed, Observing } from './events.js';

interface Grant {
  readonly token: number;
  readonly domain: string;
}

/** What one observer knows. */
interface Known {
  /** The first revision that it knows; undefined until it was told. */
  from: number | undefined;
  to: number;
  /** Grants, by name (see {@link grantOf}): an entry that ends many leases may grant their domains, at one revision. */
  readonly seen: Set<string>;
  /** Grants that were acknowledged, of revisions that it does not know yet. */
  awaited: Grant[];
  /** By domain, its live lease, as far as it saw that begin. */
  readonly live: Map<string, number>;
}

/** See the head of the file. */
export class Observers {
  readonly #wrong: (sentence: string) => void;
  readonly #known = new Map<string, Known>();

  constructor(wrong: (sentence: string) => void) {
    this.#wrong = wrong;
  }

  /** An observer begins, or goes on. */
  observing({ observer, from }: Observing): void {
    const known = this.#known.get(observer);
    if (known === undefined || from === 0)
      this.#known.set(observer, { from: undefined, to: 0, seen: new Set(), awaited: [], live: new Map() });
    else if (from !== known.to + 1) throw new Error(`${observer} goes on from ${from} and knew ${known.to}`);
  }

  /** It was told. */
  observed({ observer, to, leases }: Observed): void {
    const known = this.#known.get(observer);
    if (known === undefined) throw new Error(`${observer} observes and never began`);
    if (known.from === undefined) {
      // What the first message tells of is from before anybody asked it for everything.
      known.from = to + 1;
      known.to = to;
      return;
    }
    let before = known.to + 1;
    for (const { revision, domain, token, live } of leases) {
      if (revision < before || revision > to)
        this.#wrong(`${observer} was told of ${revision} between ${before} and ${to}`);
      before = revision;
      const { from } = known;
      const current = known.live.get(domain);
      if (live) {
        if (token !== revision) this.#wrong(`${observer} was told of a grant of ${token} at ${revision}`);
        if (current !== undefined)
          this.#wrong(`${observer} saw ${domain} granted as ${token} while ${current} was live`);
        known.seen.add(grantOf({ token, domain }));
        known.live.set(domain, token);
      } else {
        if (current !== token && token >= from)
          this.#wrong(`${observer} saw ${token} of ${domain} end, which was not live`);
        known.live.delete(domain);
      }
    }
    known.to = Math.max(known.to, to);
    const due = known.awaited.filter(({ token }) => token <= to);
    known.awaited = known.awaited.filter(({ token }) => token > to);
    for (const grant of due) this.#demand(observer, known, grant);
  }

  /** A client was told that it was granted `token`. */
  acknowledged(domain: string, token: number): void {
    for (const [observer, known] of this.#known) {
      if (token > known.to) known.awaited.push({ token, domain });
      else this.#demand(observer, known, { token, domain });
    }
  }

  #demand(observer: string, known: Known, grant: Grant): void {
    if (known.from === undefined || grant.token < known.from || known.seen.has(grantOf(grant))) return;
    this.#wrong(
      `${observer} knows everything up to ${known.to}, and saw no grant of ${grant.token} of ${grant.domain}`,
    );
  }
}

function grantOf({ token, domain }: Grant): string {
  return `${token} ${domain}`;
}
