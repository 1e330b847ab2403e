/** What a claim is, in the scenarios of both worlds. */

/** Whether a claim holds, and what was found. */
export interface Finding {
  readonly holds: boolean;
  readonly found: string;
}

/** One kind of claims about a world. */
export type Claim<W> = (world: W, words: readonly string[]) => Finding;

/** Undefined when the claim holds, else why not. */
export function judgeClaim<W>(
  claims: Readonly<Record<string, Claim<W>>>,
  world: W,
  words: readonly string[],
): string | undefined {
  const negated = words[0] === 'not';
  const [name = '', ...rest] = negated ? words.slice(1) : words;
  const claim = claims[name];
  if (claim === undefined) throw new Error(`no claim "${name}"`);
  const { holds, found } = claim(world, rest);
  return holds !== negated ? undefined : `expect ${words.join(' ')}: found ${found}`;
}
