/**
 * A scenario file: a header of `#` lines, then commands and `expect` lines at the margin; the lines under a command
 * that are indented are its recorded trace. Rewriting replaces the traces and nothing else.
 */

/** One line at the margin, with the trace below it. */
export interface Step {
  /** 1-based, for messages. */
  readonly line: number;
  readonly source: string;
  /** Empty for comments and blank lines. */
  readonly words: readonly string[];
  readonly trace: readonly string[];
}

const INDENT = '    ';

/** Reads a file. */
export function parseScript(text: string): Step[] {
  const steps: { line: number; source: string; words: string[]; trace: string[] }[] = [];
  for (const [at, source] of text.split('\n').entries()) {
    if (source.startsWith(INDENT)) steps.at(-1)?.trace.push(source.slice(INDENT.length));
    else {
      const words = source
        .replace(/(^|\s)#.*$/, '')
        .split(/\s+/)
        .filter((word) => word !== '');
      steps.push({ line: at + 1, source, words, trace: [] });
    }
  }
  return steps;
}

/** The same file with other traces. */
export function formatScript(steps: readonly Step[], traces: ReadonlyMap<number, readonly string[]>): string {
  return steps
    .flatMap((step) => [step.source, ...(traces.get(step.line) ?? []).map((line) => INDENT + line)])
    .join('\n');
}

/** The faults of the file itself: its header must name the source, the property and the removal that it catches. */
export function headerFaults(text: string): string[] {
  const header = text
    .split('\n')
    .filter((line) => line.startsWith('#'))
    .join('\n');
  const wanted = {
    Source: 'the bug it comes from',
    Breaks: 'the property code',
    'Fails when': 'the removal it catches',
  };
  return Object.entries(wanted)
    .filter(([label]) => !new RegExp(`${label}: \\S`).test(header))
    .map(([label, what]) => `the header lacks "${label}:" (${what})`);
}
