/** What a program loads with each export of the package: a worker that wants a lease loads no server. */
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join, relative, resolve } from 'node:path';
import ts from 'typescript';
import { describe, expect, it } from 'vitest';

const DIST = resolve('dist');

interface Graph {
  /** Relative to `dist`. */
  readonly files: readonly string[];
  readonly packages: readonly string[];
}

/** Everything that a file of `dist` imports, at whatever remove. */
function graphOf(entry: string): Graph {
  const files = new Set<string>();
  const packages = new Set<string>();
  const visit = (file: string): void => {
    const name = relative(DIST, file);
    if (files.has(name)) return;
    files.add(name);
    for (const { fileName } of ts.preProcessFile(readFileSync(file, 'utf8'), true, true).importedFiles) {
      if (fileName.startsWith('.')) visit(join(dirname(file), fileName));
      else packages.add(fileName);
    }
  };
  visit(join(DIST, entry));
  return { files: [...files].sort(), packages: [...packages].sort() };
}

/** The rooms that files are in. */
function roomsOf({ files }: Graph): string[] {
  return [...new Set(files.map((file) => file.replace(/\/.*/, '')))].sort();
}

describe('the main export', () => {
  const graph = graphOf('client/index.js');

  it('loads the client, the public wire format and what both stand on', () => {
    expect(roomsOf(graph)).toEqual(['base', 'client', 'wire']);
    expect(graph.files.filter((file) => file.startsWith('wire/') && !file.startsWith('wire/public'))).toEqual([]);
    expect(graph.files).toContain('client/renewer.js');
    expect(graph.files).toContain('wire/public.js');
  });

  it('loads these packages and no database', () => {
    expect(graph.packages.filter((name) => !name.startsWith('node:'))).toEqual([
      '@grpc/grpc-js',
      '@grpc/proto-loader',
      'protobufjs',
    ]);
  });
});

describe('the other exports', () => {
  it.each([
    'conformance/index',
    'dynamodb',
    'http',
    'leveldb',
    'memory',
    'mysql',
    'outbox',
    'postgres',
    'redis',
    's3',
    'sqlite',
  ])('guard/%s loads guards and what they stand on, and no driver', (guard) => {
    const graph = graphOf(`guard/${guard}.js`);
    expect(roomsOf(graph)).toEqual(['base', 'guard']);
    expect(graph.packages.filter((name) => !name.startsWith('node:'))).toEqual([]);
  });

  it('guard/grpc loads guards and what they stand on, and the packages that the client loads too', () => {
    const graph = graphOf('guard/grpc.js');
    expect(roomsOf(graph)).toEqual(['base', 'guard']);
    expect(graph.packages.filter((name) => !name.startsWith('node:'))).toEqual(['@grpc/grpc-js', 'protobufjs']);
  });

  it.each([
    ['postgres', 'fencing', 'create schema if not exists fencing'],
    ['postgres', 'outbox', 'create table if not exists fencing.outbox'],
    ['postgres', 'protect', 'create or replace function fencing.protect'],
    ['mysql', 'fencing', 'create table if not exists fencing_fence'],
    ['mysql', 'protect', 'create or replace procedure fencing_protect'],
  ])('the SQL of a guard is a file of the package, under the name that it exports: %s/%s', (guard, name, line) => {
    const path = createRequire(import.meta.url).resolve(`fencepost/guard/${guard}/${name}.sql`);
    expect(readFileSync(path, 'utf8')).toContain(line);
    const manifest = JSON.parse(readFileSync('package.json', 'utf8')) as { files: string[] };
    expect(manifest.files).toContain(`src/guard/${guard}/*.sql`);
  });

  it('fencepost/testing loads a whole node (and so this test sees what is there)', () => {
    expect(roomsOf(graphOf('testing/index.js'))).toEqual(
      expect.arrayContaining(['client', 'node', 'server', 'replica', 'raft', 'lease', 'testing']),
    );
  });
});
