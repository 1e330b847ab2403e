import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { expect, it } from 'vitest';

const FOLDER = import.meta.dirname;
const catalogue = readFileSync(join(FOLDER, 'catalogue.md'), 'utf8');
const goldenFiles = ['raft', 'lease'].flatMap((folder) =>
  readdirSync(join(FOLDER, folder)).map((file) => (folder === 'raft' ? '' : 'lease/') + file.replace('.txt', '')),
);

/** The cells of the last column, split at what separates the places. */
const places = catalogue
  .split('\n')
  .filter((line) => line.startsWith('| ') && !line.startsWith('| id') && !line.startsWith('| -'))
  .flatMap((line) => (line.split('|')[3] ?? '').split(/[,;:(]/).map((place) => place.trim()));

it('the catalogue names files that exist', () => {
  const tests = places.flatMap((place) => [...place.matchAll(/`([^`]+)`/g)].map(([, path = '']) => path));
  expect(tests.length).toBeGreaterThan(50);
  expect(tests.filter((path) => !existsSync(resolve(FOLDER, '..', path)))).toEqual([]);
  const golden = places.filter((place) => /^(lease\/)?[A-Z]+\d*-\S+$/.test(place));
  expect(golden.length).toBeGreaterThan(50);
  expect(golden.filter((name) => !goldenFiles.some((file) => file.startsWith(name.replace('…', ''))))).toEqual([]);
});

it('the catalogue names every golden file', () => {
  const named = places.map((place) => place.replace('…', '').trim());
  const missing = goldenFiles.filter(
    (file) => !named.some((name) => name !== '' && (file === name || (name.endsWith('-') && file.startsWith(name)))),
  );
  expect(missing).toEqual([]);
});
