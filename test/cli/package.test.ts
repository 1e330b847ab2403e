import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';

/** For contributors, who have the repository. */
const NOT_PACKED = ['test/README.md', 'test/sim/README.md', 'test/model/README.md'];

describe('the package', () => {
  it('has the files that its README links to', () => {
    const { files } = JSON.parse(readFileSync('package.json', 'utf8')) as { files: string[] };
    const links = [...readFileSync('README.md', 'utf8').matchAll(/\]\((?!https?:|#)([^)#]+)/g)].map(([, path]) => path);
    expect(links.length).toBeGreaterThan(0);
    const packed = (path: string): boolean => files.some((file) => path === file || path.startsWith(`${file}/`));
    expect(links.filter((path = '') => !packed(path) && !NOT_PACKED.includes(path))).toEqual([]);
  });
});
