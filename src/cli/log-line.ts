import { type Tone, toned } from './table.js';

const TONES: Readonly<Record<string, Tone>> = { info: 'dim', warn: 'strong', error: 'bad', audit: 'strong' };
/** Said before the line, or the same on every one. */
const LEFT_OUT = new Set(['level', 'time', 'message', 'node', 'cluster']);

/** Characters of fields that are shown; whoever needs them all runs `fencepost start`. */
const MAX_FIELDS = 120;

/** A line of a node's log, which is JSON, for a person; any other line as it is. */
export function readableLine(line: string, colour: boolean): string {
  let parsed: unknown;
  try {
    parsed = JSON.parse(line);
  } catch {
    return line;
  }
  if (typeof parsed !== 'object' || parsed === null) return line;
  const fields = new Map<string, unknown>(Object.entries(parsed));
  const level = fields.get('level');
  const message = fields.get('message');
  if (typeof level !== 'string' || typeof message !== 'string') return line;
  const more = [...fields].filter(([name]) => !LEFT_OUT.has(name)).map(([name, value]) => `${name}=${String(value)}`);
  const text = more.join(' ');
  const shown = text.length > MAX_FIELDS ? `${text.slice(0, MAX_FIELDS - 1)}…` : text;
  return [toned(level.padEnd(5), TONES[level] ?? 'plain', colour), message, toned(shown, 'dim', colour)]
    .join(' ')
    .trimEnd();
}
