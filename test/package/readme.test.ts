/** The code in the README: right as TypeScript, and as JavaScript it runs as it stands. */
import { readFileSync } from 'node:fs';
import { startTestServer } from 'fencepost/testing';
import type { TestServer } from 'fencepost/testing';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { snippetsIn, UserProject } from '../support/snippets.js';

/** The addresses of `npm start`. */
const ADDRESSES = /\['127\.0\.0\.1:7101', [^\]]*\]/g;
/** What each block prints: nobody takes one out of the README unseen, and none ends before its end. */
const PRINTS = [
  /^$/,
  /^the report is mine, under token \d{16}\njob 1, .*\njob 2, .*\njob 3, .*\nworking on gpu#0\n$/,
  /^true\nThe lease of orders\/eu .*force_released/,
];

const RIGHT = `import { connect } from 'fencepost';
const client = connect({ endpoints: ['127.0.0.1:7101'] });
await client.close();
`;
const MISTAKES = [
  { what: 'an option that there is not', code: RIGHT.replace('endpoints:', 'endpoint:'), says: /endpoint/ },
  { what: 'a method that there is not', code: RIGHT.replace('close', 'shutdown'), says: /shutdown/ },
  { what: 'an export that there is not', code: RIGHT.replace('{ connect }', '{ conect }'), says: /conect/ },
  {
    what: 'a path that is not exported',
    code: RIGHT.replace(`'fencepost'`, `'fencepost/client'`),
    says: /fencepost\/client/,
  },
];
const TYPED = RIGHT.replace('const client', `const wrong: number = 'text';\nconsole.log(wrong);\nconst client`);

const snippets = snippetsIn(readFileSync('README.md', 'utf8'));
let server: TestServer;
let project: UserProject;
const faults = new Map<string, readonly string[]>();

beforeAll(async () => {
  server = await startTestServer();
  project = await UserProject.create();
  const all = [...snippets, ...MISTAKES].map(({ code }) => code).concat(RIGHT, TYPED);
  for (const [at, found] of (await project.faults(all)).entries()) faults.set(all[at] ?? '', found);
}, 120_000);

afterAll(async () => {
  await server.stop();
  await project[Symbol.asyncDispose]();
});

describe('README', () => {
  it('has as many blocks of code as this test knows', () => {
    expect(snippets).toHaveLength(PRINTS.length);
  });

  it.each(snippets.map((snippet, at) => ({ ...snippet, prints: PRINTS[at] ?? /^never$/ })))(
    'line $line: compiles, and runs',
    async ({ language, code, prints }) => {
      expect(faults.get(code)).toEqual([]);
      const here = code.replace(ADDRESSES, JSON.stringify(server.endpoints));
      expect(await project.run({ language, code: here })).toMatch(prints);
    },
  );
});

describe('a block of code', () => {
  it('without a mistake passes', async () => {
    expect(faults.get(RIGHT)).toEqual([]);
    expect(await project.run({ language: 'js', code: RIGHT })).toBe('');
  });

  it.each(MISTAKES)('with $what fails as TypeScript and as JavaScript', async ({ code, says }) => {
    expect(faults.get(code)?.join()).toMatch(says);
    await expect(project.run({ language: 'js', code })).rejects.toThrow();
  });

  it('with types: they are checked, and taken out before it is run', async () => {
    expect(faults.get(TYPED)?.join()).toMatch(/not assignable/);
    expect(await project.run({ language: 'ts', code: TYPED })).toBe('text\n');
  });

  it('in a language that nobody checks is refused', () => {
    expect(() => snippetsIn('text\n\n```python\nx\n```\n')).toThrow('line 3: a block of python');
  });
});
