/** Tables for people: columns as wide as they need to be, numbers to the right, colours only where they are shown. */
import { styleText } from 'node:util';

/** Meaning of a cell, shown as a colour. */
export type Tone = 'plain' | 'good' | 'bad' | 'dim' | 'strong';

/** A text, with its meaning when it has one. */
export type Cell = string | { readonly text: string; readonly tone: Tone };

/** A column; numbers stand to the right. */
export interface Column {
  readonly title: string;
  readonly numeric?: boolean;
}

const STYLES = { good: 'green', bad: 'red', dim: 'dim', strong: 'bold' } as const;

/** `text` in the colour of its meaning, or as it is. */
export function toned(text: string, tone: Tone, colour: boolean): string {
  return colour && tone !== 'plain' ? styleText(STYLES[tone], text, { validateStream: false }) : text;
}

/** Lines of a table with a head; two spaces between columns, none at the end of a line. */
export function table(columns: readonly Column[], rows: readonly (readonly Cell[])[], colour: boolean): string {
  const head = columns.map((column): Cell => ({ text: column.title.toUpperCase(), tone: 'dim' }));
  return layOut(columns, [head, ...rows], colour);
}

/** Lines of `name  value`, the names dim. */
export function pairs(rows: readonly (readonly [name: string, value: Cell])[], colour: boolean): string {
  return layOut(
    [{ title: '' }, { title: '' }],
    rows.map(([name, value]) => [{ text: name, tone: 'dim' }, value]),
    colour,
  );
}

function layOut(columns: readonly Column[], rows: readonly (readonly Cell[])[], colour: boolean): string {
  const widths = columns.map((_, at) => Math.max(0, ...rows.map((row) => parts(row[at]).text.length)));
  return rows
    .map((row) => {
      const cells = columns.map((column, at) => {
        const { text, tone } = parts(row[at]);
        const room = ' '.repeat((widths[at] ?? 0) - text.length);
        // The padding stays outside the colour and falls away behind the last cell of a line.
        return column.numeric === true ? room + toned(text, tone, colour) : toned(text, tone, colour) + room;
      });
      return cells.join('  ').trimEnd();
    })
    .join('\n');
}

function parts(cell: Cell | undefined): { readonly text: string; readonly tone: Tone } {
  return typeof cell === 'object' ? cell : { text: cell ?? '', tone: 'plain' };
}
