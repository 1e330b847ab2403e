/** The code in the README of the guards: right as TypeScript, and run on what each guard is for. */
import { readFileSync } from 'node:fs';
import { symlink, writeFile } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { startTestServer } from 'fencepost/testing';
import type { TestServer } from 'fencepost/testing';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { freePorts } from '../process/cluster.js';
import { POSTGRES, PostgresServer } from '../servers/postgres.js';
import { SQLITE } from '../servers/sqlite.js';
import { MailServer } from '../support/mail-server.js';
import { snippetsIn, UserProject } from '../support/snippets.js';

const TEXT = readFileSync('src/guard/README.md', 'utf8');
const SHIMS = "declare module 'pg';\ndeclare module 'better-sqlite3';\n";
/** What every block takes for granted. */
const GIVEN = `const lease = { domain: 'orders/eu', token: 1_796_000_000_000_040n, cluster: 'prod', incarnation: '${'a'.repeat(32)}' };\n`;
const SKU = "const sku = 'a';\n";

/** How a block is run: found by what it says, with what stands before it, and what it comes to. */
interface Stage {
  readonly block: string;
  readonly given: string;
  /** Behind the last statement of the block; what it prints. */
  readonly show: string;
  readonly prints: RegExp;
  readonly needs?: 'postgres' | 'sqlite';
}

const STAGES: readonly Stage[] = [
  {
    block: "from 'fencepost/guard/leveldb'",
    given: '',
    show: "console.log(done.status, await db.get('stock'));",
    prints: /^applied -1$/,
  },
  {
    block: "from 'fencepost/guard/sqlite'",
    given: `${SKU}new Database('orders.db').exec("create table stock (sku text, qty int); insert into stock values ('a', 10)");\n`,
    show: "console.log(done.status, db.prepare('select qty from stock').get().qty);",
    prints: /^applied 9$/,
    needs: 'sqlite',
  },
  {
    block: "from 'fencepost/guard/memory'",
    given:
      'const plotter = { at: 1, position: () => plotter.at, moveTo: (to: number, _: object) => { plotter.at = to; } } as ' +
      '{ at: number; position(): number; moveTo(to: number, options: object): void };\n',
    show: 'console.log(done.status, plotter.at);',
    prints: /^applied 2$/,
  },
  {
    block: 'postgresFence(new pg.Pool(), {',
    given: SKU,
    show: "console.log(done.status, (await new pg.Pool().query('select qty from stock')).rows[0].qty);",
    prints: /^applied 9$/,
    needs: 'postgres',
  },
  {
    block: 'postgresRows(pool',
    given: "import pg from 'pg';\nconst pool = new pg.Pool();\n",
    show: "console.log(paid.status, (await pool.query('select balance from account')).rows[0].balance);",
    prints: /^applied 75$/,
    needs: 'postgres',
  },
  {
    block: 'await enqueue(',
    given: 'const id = 7;\n',
    show: "console.log(shipped.status, (await new pg.Pool().query('select payload from fencing.outbox')).rows[0].payload.text);",
    prints: /^applied order 7 is on its way$/,
    needs: 'postgres',
  },
  {
    // It runs for as long as it leads: this one ends when the first mail is there. It sends what the block before wrote down.
    block: 'outboxDispatcher(',
    given: `const mailServer = 'MAIL';
const send = fetch;
globalThis.fetch = async (...args) => {
  const answer = await send(...args);
  console.log(answer.status);
  setImmediate(() => process.exit());
  return answer;
};\n`,
    show: '',
    prints: /^200$/,
    needs: 'postgres',
  },
  {
    block: 'createServer(',
    given: "const port = Number('PORT');\n",
    show: `const body = JSON.stringify({ text: 'one mail' });
for (let at = 0; at < 2; at++) await fetch('http://127.0.0.1:PORT', { method: 'POST', headers: { 'idempotency-key': 'x' }, body });`,
    prints: /^one mail$/,
  },
  // Nothing is there to be checked: the kit's own tests run it.
  { block: 'conformanceCases(subject)', given: '', show: '', prints: /^never$/ },
];

/** Only the blocks that this test is about; lines stay where they are. */
const scripts = snippetsIn(TEXT.replace(/^```(?!ts\n|js\n)\S+\n.*?^```$/gms, (all) => all.replace(/.+/g, '')));
const [postgres] = POSTGRES;
const [sqlite] = SQLITE;
const missing = {
  postgres: postgres?.bin === undefined ? postgres?.name : undefined,
  sqlite: sqlite?.open === undefined ? sqlite?.name : undefined,
};

/** A program with the block inside a function, because it returns. */
function programOf(code: string, { given, show }: Stage): string {
  if (code.includes('declare const')) return code;
  const [imports, rest] = [/^import .*\n/gm, /^(?!import ).*\n/gm].map((lines) => (code.match(lines) ?? []).join(''));
  return (
    `/// <reference path="./shims.d.ts" />\n${imports}${given.startsWith('import') ? '' : GIVEN}${given}` +
    `${given.startsWith('import') ? GIVEN : ''}async function block() {\n${rest}${show}\n}\nawait block();\nprocess.exit();\n`
  );
}

describe('README of the guards', () => {
  let project: UserProject;
  let server: TestServer;
  let database: PostgresServer | undefined;
  let mails: MailServer;
  let port = 0;
  const faults = new Map<string, readonly string[]>();
  const staged = scripts.map((snippet) => ({
    ...snippet,
    stage: STAGES.find(({ block }) => snippet.code.includes(block)),
  }));

  beforeAll(async () => {
    [project, server, mails, [port = 0]] = await Promise.all([
      UserProject.create(),
      startTestServer(),
      MailServer.start(),
      freePorts(1),
    ]);
    await writeFile(join(project.home, 'shims.d.ts'), SHIMS);
    for (const name of ['pg', 'better-sqlite3']) {
      await symlink(resolve('test/servers/node_modules', name), join(project.home, 'node_modules', name));
    }
    const codes = staged.flatMap(({ code, stage }) => (stage === undefined ? [] : [programOf(code, stage)]));
    for (const [at, found] of (await project.faults(codes)).entries()) faults.set(codes[at] ?? '', found);
    if (postgres === undefined || missing.postgres !== undefined) return;
    database = await PostgresServer.start(postgres);
    const { host, port: at, user, database: name } = database.connection;
    // As `psql` and the driver look for them.
    Object.assign(process.env, { PGHOST: host, PGPORT: String(at), PGUSER: user, PGDATABASE: name });
    const pool = database.pool();
    for (const file of ['fencing', 'protect', 'outbox']) {
      await pool.query(readFileSync(`src/guard/postgres/${file}.sql`, 'utf8'));
    }
    await pool.query(`
      create table stock (sku text, qty int); insert into stock values ('a', 10);
      create table account (id int, balance bigint); insert into account values (7, 100);
      create table orders (id int, status text); insert into orders values (7, 'paid');
      create table parts (domain text)`);
    await pool.query(sqlOf('alter table account'));
  }, 120_000);
  afterAll(async () => {
    for (const name of ['PGHOST', 'PGPORT', 'PGUSER', 'PGDATABASE']) Reflect.deleteProperty(process.env, name);
    await Promise.all([database?.[Symbol.asyncDispose](), server.stop(), mails[Symbol.asyncDispose]()]);
    await project[Symbol.asyncDispose]();
  });

  it('has every block that this test knows, once', () => {
    const found = STAGES.map(({ block }) => scripts.filter(({ code }) => code.includes(block)).length);
    expect(found).toEqual(STAGES.map(() => 1));
  });

  for (const { code, line, stage } of staged) {
    if (stage === undefined) {
      it.skip(`line ${line}: this test has no stage for it`, () => undefined);
      continue;
    }
    it(`line ${line}: compiles`, () => {
      expect(faults.get(programOf(code, stage))).toEqual([]);
    });
    if (code.includes('declare const')) continue;
    const lacking = stage.needs === undefined ? undefined : missing[stage.needs];
    it.skipIf(lacking !== undefined)(
      `line ${line}: runs${lacking === undefined ? '' : `, with ${lacking}`}`,
      async () => {
        const here = programOf(code, stage)
          .replace(/\['127\.0\.0\.1:7101', [^\]]*\]/g, JSON.stringify(server.endpoints))
          .replaceAll('PORT', String(port))
          .replace('MAIL', mails.url);
        expect((await project.run({ language: 'ts', code: here })).trim()).toMatch(stage.prints);
      },
    );
  }

  it.skipIf(missing.postgres !== undefined)('the blocks of SQL for PostgreSQL run as they stand', async () => {
    const pool = database?.pool();
    for (const begin of ['begin;', "select fencing.protect('stock'", 'select * from fencing.outbox_set_aside']) {
      await pool?.query(sqlOf(begin));
    }
    expect(mails.texts).toEqual(['order 7 is on its way']);
  });
});

/** The one block of SQL that begins so. */
function sqlOf(begin: string): string {
  const [block, ...more] = [...TEXT.matchAll(/^```sql\n(.*?)^```$/gms)].filter(([, sql]) => sql?.startsWith(begin));
  if (block?.[1] === undefined || more.length > 0) throw new Error(`not one block begins with ${begin}`);
  return block[1];
}
