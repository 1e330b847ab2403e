/** The code in the README of the guards: right as TypeScript, and run on what each guard is for. */
import { existsSync, readFileSync } from 'node:fs';
import { mkdir, symlink, writeFile } from 'node:fs/promises';
import { join, relative, resolve } from 'node:path';
import { startTestServer } from 'fencepost/testing';
import type { TestServer } from 'fencepost/testing';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { freePorts } from '../process/cluster.js';
import { createTable, DYNAMODB, DynamoServer, openDynamo } from '../servers/dynamodb.js';
import { MARIADB, MariadbServer } from '../servers/mariadb.js';
import { POSTGRES, PostgresServer } from '../servers/postgres.js';
import { REDIS_MISSING, RedisServer } from '../servers/redis.js';
import { S3Fake } from '../servers/s3-fake.js';
import { SQLITE } from '../servers/sqlite.js';
import { STAGES } from '../support/guard-readme-stages.js';
import type { Need, Stage } from '../support/guard-readme-stages.js';
import { MailServer } from '../support/mail-server.js';
import { snippetsIn, UserProject } from '../support/snippets.js';

const TEXT = readFileSync('src/guard/README.md', 'utf8');
/** Of drivers without types. */
const SHIMS = "declare module 'pg';\ndeclare module 'better-sqlite3';\n";
const NPM = resolve('test/servers/node_modules');
/** Drivers that come with their types, those of the AWS in one folder. */
const DRIVERS = ['@aws-sdk', 'better-sqlite3', 'ioredis', 'mysql2', 'pg'];
/** For the clients of servers on this machine. */
const AWS = "region: 'local', credentials: { accessKeyId: 'test', secretAccessKey: 'test' }";
/** What every block takes for granted. */
const GIVEN = `const lease = { domain: 'orders/eu', token: 1_796_000_000_000_040n, cluster: 'prod', incarnation: '${'a'.repeat(32)}' };\n`;
/** Only the blocks that this test is about; lines stay where they are. */
const scripts = snippetsIn(TEXT.replace(/^```(?!ts\n|js\n)\S+\n.*?^```$/gms, (all) => all.replace(/.+/g, '')));
const [postgres] = POSTGRES;
const [sqlite] = SQLITE;
const [mariadb] = MARIADB;
const missing: Readonly<Record<Need, string | undefined>> = {
  dynamodb: DYNAMODB.isHere ? undefined : DYNAMODB.name,
  mariadb: mariadb?.program === undefined ? mariadb?.name : undefined,
  postgres: postgres?.bin === undefined ? postgres?.name : undefined,
  redis: REDIS_MISSING,
  s3: existsSync(join(NPM, '@aws-sdk/client-s3'))
    ? undefined
    : 'the client of S3 (missing: npm ci --prefix test/servers)',
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
  let maria: MariadbServer | undefined;
  let mails: MailServer;
  let port = 0;
  /** What is said in a block, and what a test says instead. */
  const instead = new Map<string, string>();
  const running: AsyncDisposable[] = [];
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
    running.push(project, { [Symbol.asyncDispose]: () => server.stop() }, mails);
    instead.set("['127.0.0.1:7101', '127.0.0.1:7102', '127.0.0.1:7103']", JSON.stringify(server.endpoints));
    instead.set('http://stock', `http://127.0.0.1:${port}`).set('PORT', String(port)).set('MAIL', mails.url);
    const modules = join(project.home, 'node_modules');
    await writeFile(join(project.home, 'shims.d.ts'), SHIMS);
    for (const name of DRIVERS) await symlink(join(NPM, name), join(modules, name));
    // Its types are another package.
    const express = join(modules, 'express');
    await mkdir(express);
    const [main, types] = ['express/index.js', '@types/express/index.d.ts'].map((file) =>
      relative(express, join(NPM, file)),
    );
    await writeFile(join(express, 'package.json'), JSON.stringify({ name: 'express', main, types }));
    const codes = staged.flatMap(({ code, stage }) => (stage === undefined ? [] : [programOf(code, stage)]));
    for (const [at, found] of (await project.faults(codes)).entries()) faults.set(codes[at] ?? '', found);
    await Promise.all([startPostgres(), startMariadb(), startRedis(), startS3(), startDynamo()]);
  }, 180_000);
  afterAll(async () => {
    for (const name of ['PGHOST', 'PGPORT', 'PGUSER', 'PGDATABASE']) Reflect.deleteProperty(process.env, name);
    await Promise.all(running.map((each) => each[Symbol.asyncDispose]()));
  });

  async function startPostgres(): Promise<void> {
    if (postgres === undefined || missing.postgres !== undefined) return;
    running.push((database = await PostgresServer.start(postgres)));
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
    await pool.query(sqlOf('alter table account', 'fence_issuer text'));
  }

  async function startMariadb(): Promise<void> {
    if (mariadb === undefined || missing.mariadb !== undefined) return;
    running.push((maria = await MariadbServer.start(mariadb)));
    instead.set("{ database: 'app' }", JSON.stringify(maria.connection));
    for (const file of ['fencing', 'protect']) maria.apply(readFileSync(`src/guard/mysql/${file}.sql`, 'utf8'));
    maria.apply(`
      create table stock (sku varchar(10) primary key, qty int); insert into stock values ('a', 10);
      create table account (id int primary key, balance bigint); insert into account values (7, 100);
      create table parts (domain varchar(100))`);
    maria.apply(sqlOf('alter table account', 'fence_issuer varbinary'));
  }

  async function startRedis(): Promise<void> {
    if (missing.redis !== undefined) return;
    const redis = await RedisServer.start();
    running.push(redis);
    instead.set('new Redis({', `new Redis({ port: ${redis.port},`);
  }

  async function startS3(): Promise<void> {
    const s3 = await S3Fake.start();
    running.push(s3);
    instead.set("'shop'", `'${S3Fake.BUCKET}'`);
    instead.set('new S3({})', `new S3({ endpoint: '${s3.url}', forcePathStyle: true, ${AWS} })`);
  }

  async function startDynamo(): Promise<void> {
    if (missing.dynamodb !== undefined) return;
    const dynamo = await DynamoServer.start();
    running.push(dynamo);
    const db = openDynamo(dynamo.url);
    await createTable(db, 'fences', 'domain');
    await createTable(db, 'stock', 'sku');
    await db.putItem({ TableName: 'stock', Item: { sku: { S: 'a' }, qty: { N: '10' } } });
    db.destroy();
    instead.set('new DynamoDB({})', `new DynamoDB({ endpoint: '${dynamo.url}', ${AWS} })`);
  }

  it('has every block that this test knows, once', () => {
    const found = STAGES.map(({ block }) => scripts.filter(({ code }) => code.includes(block)).length);
    expect(found).toEqual(STAGES.map(() => 1));
    expect(staged.filter(({ stage }) => stage === undefined).map(({ line }) => `line ${line} has no stage`)).toEqual(
      [],
    );
  });

  for (const { code, line, stage } of staged) {
    if (stage === undefined) continue;
    const lacking = stage.needs === undefined ? undefined : missing[stage.needs];
    const withWhat = lacking === undefined ? '' : `, with ${lacking}`;
    it.skipIf(lacking !== undefined)(`line ${line}: compiles${withWhat}`, () => {
      expect(faults.get(programOf(code, stage))).toEqual([]);
    });
    if (code.includes('declare const')) continue;
    it.skipIf(lacking !== undefined)(`line ${line}: runs${withWhat}`, async () => {
      let here = programOf(code, stage);
      for (const [said, other] of instead) here = here.replaceAll(said, other);
      expect((await project.run({ language: 'ts', code: here })).trim()).toMatch(stage.prints);
    });
  }

  it.skipIf(missing.postgres !== undefined)('the blocks of SQL for PostgreSQL run as they stand', async () => {
    const pool = database?.pool();
    for (const begin of ['begin;', "select fencing.protect('stock'", 'select * from fencing.outbox_set_aside']) {
      await pool?.query(sqlOf(begin));
    }
    expect(mails.texts).toEqual(['order 7 is on its way']);
  });

  it.skipIf(missing.mariadb !== undefined)('the blocks of SQL for MariaDB run as they stand', async () => {
    for (const begin of ['start transaction;', "call fencing_protect('stock'"]) maria?.apply(sqlOf(begin));
    expect((await maria?.pool().query('select qty from stock'))?.[0]).toEqual([{ qty: 8 }]);
  });
});

/** The one block of SQL that begins so, and has this in it. */
function sqlOf(begin: string, part = ''): string {
  const [block, ...more] = [...TEXT.matchAll(/^```sql\n(.*?)^```$/gms)].filter(
    ([, sql]) => sql?.startsWith(begin) === true && sql.includes(part),
  );
  if (block?.[1] === undefined || more.length > 0) throw new Error(`not one block begins with ${begin}`);
  return block[1];
}
