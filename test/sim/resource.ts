/**
 * The fenced resource: one store for each domain that remembers the greatest token it has accepted, and refuses less
 * (design 10). It outlives every cluster. What it saw is judged at the end.
 */
import type { Coverage } from './coverage.js';
import type { Fault } from './observation.js';

/** A write as it arrives. */
export interface Write {
  readonly domain: string;
  readonly token: number;
  readonly client: string;
  readonly incarnation: string;
  /** `advance` opens a tenure: it raises the fence and changes nothing else. */
  readonly kind: 'advance' | 'write';
}

/** A write with what became of it. */
export interface Written extends Write {
  /** True time. */
  readonly at: number;
  readonly accepted: boolean;
  /** The fence that it met. */
  readonly fence: number;
}

/** See the head of the file. */
export class Resource {
  readonly written: Written[] = [];
  readonly #fences = new Map<string, number>();
  readonly #coverage: Coverage;
  /** Told of every write, after it was decided. */
  onWrite: (written: Written) => void = () => undefined;

  constructor(coverage: Coverage) {
    this.#coverage = coverage;
  }

  /** The greatest token accepted; 0 before the first. */
  fence(domain: string): number {
    return this.#fences.get(domain) ?? 0;
  }

  /** Checks, raises and writes in one step; true when the write was accepted. */
  write(write: Write, at: number): boolean {
    const fence = this.fence(write.domain);
    const accepted = write.token >= fence;
    if (accepted) this.#fences.set(write.domain, write.token);
    else this.#coverage.count('stale write refused');
    const written = { ...write, at, accepted, fence };
    this.written.push(written);
    this.onWrite(written);
    return accepted;
  }
}

/** STALE: the tokens that a resource accepted fell. SHARED: two clients, or two histories, used one token. */
export function judgeWrites(written: readonly Written[]): Fault[] {
  const greatest = new Map<string, number>();
  const owners = new Map<string, string>();
  const faults: Fault[] = [];
  for (const { domain, token, client, incarnation, accepted, at } of written) {
    if (!accepted) continue;
    const before = greatest.get(domain) ?? 0;
    if (token < before) {
      faults.push({
        code: 'STALE',
        text: `${at.toFixed(1)}: ${domain} accepted ${token} of ${client} after ${before}`,
      });
    }
    greatest.set(domain, Math.max(before, token));
    const owner = `${client} of ${incarnation}`;
    const known = owners.get(`${domain} ${token}`);
    if (known !== undefined && known !== owner) {
      faults.push({ code: 'SHARED', text: `${domain} ${token} was used by ${known} and by ${owner}` });
    }
    owners.set(`${domain} ${token}`, owner);
  }
  return faults;
}
