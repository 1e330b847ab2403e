/** A server with the table of the fences and one of items, and a guard over them, for tests. */
import { randomUUID } from 'node:crypto';
import { dynamoFence } from '../../src/guard/dynamodb.js';
import type { DynamoFence } from '../../src/guard/dynamodb.js';
import { createTable, openDynamo } from '../servers/dynamodb.js';
import type { DynamoDB, TransactWriteItem } from '../servers/dynamodb.js';

/** Tables of their own on one server. */
export class FencedTables {
  readonly db: DynamoDB;
  readonly fences: string;
  readonly items: string;

  readonly #name: string;

  private constructor(db: DynamoDB, name: string) {
    this.db = db;
    this.#name = name;
    this.fences = `fences-${name}`;
    this.items = `items-${name}`;
  }

  static async create(url: string): Promise<FencedTables> {
    const tables = new FencedTables(openDynamo(url), randomUUID());
    await createTable(tables.db, tables.fences, 'domain');
    await createTable(tables.db, tables.items, 'domain', 'item');
    return tables;
  }

  /** The same tables, of a server that has been started again. */
  at(url: string): FencedTables {
    return new FencedTables(openDynamo(url), this.#name);
  }

  /** Also over another client of the same server, or one that fails. */
  fence(client: Pick<DynamoDB, 'getItem' | 'transactWriteItems'> = this.db): DynamoFence<TransactWriteItem> {
    return dynamoFence(client, { table: this.fences });
  }

  put(domain: string, item: string, value: string): TransactWriteItem {
    const row = { domain: { S: domain }, item: { S: item }, value: { S: value } };
    return { Put: { TableName: this.items, Item: row } };
  }

  remove(domain: string, item: string): TransactWriteItem {
    return { Delete: { TableName: this.items, Key: { domain: { S: domain }, item: { S: item } } } };
  }

  async read(domain: string, item: string): Promise<string | undefined> {
    const key = { domain: { S: domain }, item: { S: item } };
    return (await this.db.getItem({ TableName: this.items, Key: key, ConsistentRead: true })).Item?.['value']?.S;
  }
}
