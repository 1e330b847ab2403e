/** Source patches in memory: how the detection gate takes one protective rule out of a file without touching it. */

/** Replaces one place of one source file. */
export interface Patch {
  /** Relative to the root of the repository: `src/raft/log.ts`. */
  readonly file: string;
  /** Must occur exactly once in the file, so that a patch cannot hit another place than the one that was meant. */
  readonly text: string;
  readonly replacement: string;
}

/** The patch does not fit the source as it is now: the source has changed, and the patch has to follow. */
export class PatchMisfit extends Error {
  override readonly name = 'PatchMisfit';
  constructor({ file, text }: Patch, found: number) {
    super(`a patch of ${file} must match exactly one place and matches ${found}: ${JSON.stringify(text)}`);
  }
}

/** `source` with the patch applied. Throws {@link PatchMisfit} unless `text` occurs exactly once. */
export function applyPatch(source: string, patch: Patch): string {
  const parts = source.split(patch.text);
  if (parts.length !== 2) throw new PatchMisfit(patch, parts.length - 1);
  return parts.join(patch.replacement);
}

/**
 * The name of the function in which the patch's text begins, as a stack trace shows it; undefined outside of any. By
 * indentation, which the formatter fixes: functions stand at the margin, methods two columns in.
 */
export function patchedFunction(source: string, patch: Patch): string | undefined {
  const before = source.slice(0, source.indexOf(patch.text)).split('\n');
  // A text that begins within a line belongs to what that line declares.
  const at = source.indexOf(patch.text);
  const end = source.indexOf('\n', at);
  before[before.length - 1] = source.slice(source.lastIndexOf('\n', at) + 1, end < 0 ? source.length : end);
  for (const line of before.reverse()) {
    const named =
      /^(?:export )?(?:async )?function\*? (\w+)/.exec(line) ?? /^ {2}(?:static |async )*(#?\w+)\(.*\{$/.exec(line);
    if (named?.[1] !== undefined) return named[1];
    if (/^ {2}(?:static |async )*(#?\w+)\($/.test(line))
      return line
        .trim()
        .replace(/^(?:static |async )*/, '')
        .slice(0, -1);
  }
  return undefined;
}
