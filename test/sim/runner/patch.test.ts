import { describe, expect, it } from 'vitest';
import { applyPatch, patchedFunction, PatchMisfit } from './patch.js';

const SOURCE = `export function first(): number {
  return 1;
}

function second(
  value: number,
): number {
  return value + 1;
}

class Third {
  #hidden(value: number): number {
    return value + 2;
  }
}
`;

describe('a source patch', () => {
  it('replaces its one place', () => {
    const patch = { file: 'a.ts', text: 'return 1;', replacement: 'return 7;' };
    expect(applyPatch(SOURCE, patch)).toBe(SOURCE.replace('return 1;', 'return 7;'));
  });

  it('refuses a text that is not there', () => {
    const patch = { file: 'a.ts', text: 'return 3;', replacement: '' };
    expect(() => applyPatch(SOURCE, patch)).toThrow(new PatchMisfit(patch, 0));
    expect(() => applyPatch(SOURCE, patch)).toThrow('a patch of a.ts must match exactly one place and matches 0');
  });

  it('refuses a text that is there twice', () => {
    const patch = { file: 'a.ts', text: 'return value', replacement: 'return' };
    expect(() => applyPatch(SOURCE, patch)).toThrow(new PatchMisfit(patch, 2));
  });

  it.each([
    ['return 1;', 'first'],
    ['value + 1', 'second'],
    ['value + 2', '#hidden'],
    ['function second(', 'second'],
  ])('knows in which function %j stands', (text, name) => {
    expect(patchedFunction(SOURCE, { file: 'a.ts', text, replacement: '' })).toBe(name);
  });
});
