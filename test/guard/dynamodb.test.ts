/** What is particular to DynamoDB: conditions of the user's own, conflicts, repeated requests, large numbers, the statement for others. */
import { mkdtemp, rm } from 'node:fs/promises';
import { readFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { dynamoFence } from '../../src/guard/dynamodb.js';
import type { DynamoFence, FencedLease } from '../../src/guard/dynamodb.js';
import { DYNAMODB, DynamoServer } from '../servers/dynamodb.js';
import type { DynamoDB, TransactWriteItem } from '../servers/dynamodb.js';
import { FencedTables } from './dynamodb-tables.js';

const INCARNATION = 'a'.repeat(32);

function leaseOf(token: number | bigint, domain = 'a'): FencedLease {
  return { domain, token: BigInt(token), cluster: 'test', incarnation: INCARNATION };
}

describe.skipIf(!DYNAMODB.isHere)(DYNAMODB.name, () => {
  let server: DynamoServer;
  let tables: FencedTables;
  let fence: DynamoFence<TransactWriteItem>;
  let domains = 0;
  const put = (lease: FencedLease, item: string, value: string, by = fence) =>
    by.run(lease, (data) => {
      data.write(tables.put(lease.domain, item, value));
    });
  /** As an update of the one item of a domain. */
  const update = ({ domain }: FencedLease, expression: string, condition?: string): TransactWriteItem => ({
    Update: {
      TableName: tables.items,
      Key: { domain: { S: domain }, item: { S: 'one' } },
      UpdateExpression: expression,
      ...(condition === undefined ? {} : { ConditionExpression: condition }),
      ExpressionAttributeNames: { '#v': 'value' },
      ExpressionAttributeValues: { ':one': { N: '1' } },
    },
  });
  const numberOf = async ({ domain }: FencedLease) => {
    const key = { domain: { S: domain }, item: { S: 'one' } };
    return (await tables.db.getItem({ TableName: tables.items, Key: key })).Item?.['value']?.N;
  };
  /** The client, with another way to send transactions. */
  const sending = (send: (input: Parameters<DynamoDB['transactWriteItems']>[0]) => Promise<unknown>) =>
    tables.fence({
      getItem: tables.db.getItem.bind(tables.db),
      transactWriteItems: send,
    } as unknown as DynamoDB);
  const fresh = (token: number | bigint): FencedLease => leaseOf(token, `domain/${++domains}`);

  beforeAll(async () => {
    server = await DynamoServer.start();
    tables = await FencedTables.create(server.url);
    fence = tables.fence();
  }, 120_000);
  afterAll(async () => {
    tables.db.destroy();
    await server[Symbol.asyncDispose]();
  });

  it('says missing when a condition of the work does not hold, and nothing is written, or raised', async () => {
    const lease = fresh(5);
    const both = (by: FencedLease) =>
      fence.run(by, (data) => {
        data.write(update(by, 'ADD #v :one', '#v >= :one'));
        data.write(tables.put(by.domain, 'two', 'there'));
      });
    expect(await both(lease)).toEqual({ status: 'missing' });
    expect([await fence.fence(lease.domain), await tables.read(lease.domain, 'two')]).toEqual([undefined, undefined]);
    await fence.open(lease);
    expect(await both(lease)).toEqual({ status: 'missing' });
    // Stale comes first.
    expect(await both({ ...lease, token: 4n })).toEqual({ status: 'stale', fence: 5n });
    await fence.run(lease, (data) => {
      data.write(update(lease, 'SET #v = :one'));
    });
    expect(await both(lease)).toMatchObject({ status: 'applied' });
    expect([await numberOf(lease), await tables.read(lease.domain, 'two')]).toEqual(['2', 'there']);
  });

  it('carries a transaction out once that the client sends twice, and the second answer is the one that counts', async () => {
    const lease = fresh(5);
    const twice = sending(async (input) => {
      await tables.db.transactWriteItems(input);
      return tables.db.transactWriteItems(input);
    });
    const add = () =>
      twice.run(lease, (data) => {
        data.write(update(lease, 'ADD #v :one'));
      });
    expect([(await add()).status, (await add()).status]).toEqual(['applied', 'applied']);
    expect(await numberOf(lease)).toBe('2');
  });

  it('sends anew what met other transactions, five times at most; other cancellations and errors it throws', async () => {
    const lease = fresh(5);
    await fence.open(lease);
    const cancelled = (...codes: string[]) =>
      Object.assign(new Error(codes.join()), {
        name: 'TransactionCanceledException',
        CancellationReasons: codes.map((code) => ({ Code: code })),
      });
    let left = 3;
    let sent = 0;
    const met = sending((input) => {
      sent++;
      if (left-- > 0) return Promise.reject(cancelled('None', 'TransactionConflict'));
      return tables.db.transactWriteItems(input);
    });
    expect(await put(lease, 'one', 'x', met)).toMatchObject({ status: 'applied' });
    expect(sent).toBe(4);
    left = Infinity;
    const cause = expect.objectContaining({ name: 'TransactionCanceledException' }) as unknown;
    expect(await put(lease, 'one', 'y', met)).toEqual({ status: 'retry', attempts: 5, cause });
    expect(await tables.read(lease.domain, 'one')).toBe('x');
    // The third: nobody has looked at the fence, so nobody can say that it lets the operation pass.
    const unjudged = cancelled('ThrottlingError', 'ConditionalCheckFailed');
    for (const error of [cancelled('None', 'ThrottlingError'), new Error('read ECONNRESET'), unjudged])
      await expect(
        put(
          lease,
          'one',
          'z',
          sending(() => Promise.reject(error)),
        ),
      ).rejects.toBe(error);
  });

  it.each([undefined, 4n])('raises a fence over the very one that it saw, %s: over no later one', async (before) => {
    const lease = fresh(5);
    if (before !== undefined) await fence.open({ ...lease, token: before });
    let sent = 0;
    const overtaken = sending(async (input) => {
      // The first says where the fence is; the second would raise it.
      if (++sent === 2) await fence.open({ ...lease, token: 6n });
      return tables.db.transactWriteItems(input);
    });
    expect(await put(lease, 'one', 'late', overtaken)).toEqual({ status: 'stale', fence: 6n });
    expect([sent, await tables.read(lease.domain, 'one')]).toEqual([2, undefined]);
  });

  it('raises no fence of several when one lease is stale, and each when none is', async () => {
    const [a, b] = [fresh(5), fresh(7)];
    await fence.open(b);
    const both = (...leases: FencedLease[]) =>
      fence.run(leases, (data) => {
        for (const { domain } of leases) data.write(tables.put(domain, 'one', 'moved'));
      });
    expect(await both(a, { ...b, token: 6n })).toEqual({ status: 'stale', fence: 7n });
    expect(await fence.fence(a.domain)).toBeUndefined();
    expect(await both(b, a)).toMatchObject({ status: 'applied' });
    expect((await fence.fence(a.domain))?.token).toBe(5n);
  });

  it('keeps tokens exact that have many zeros, or all their bits', async () => {
    for (const token of [10n ** 18n, 9_007_199_254_740_993n, 2n ** 63n - 1n]) {
      const lease = fresh(token);
      await put(lease, 'one', 'x');
      expect((await fence.fence(lease.domain))?.token).toBe(token);
      expect(await put({ ...lease, token: token - 1n }, 'one', 'y')).toEqual({ status: 'stale', fence: token });
    }
  });

  it('keeps its hands on the table of the fences, and off what the work adds too late', async () => {
    const lease = fresh(5);
    for (const name of [tables.fences, `arn:aws:dynamodb:local:000000000000:table/${tables.fences}`]) {
      const attempt = fence.run(lease, (data) => {
        data.write({ Delete: { TableName: name, Key: { domain: { S: lease.domain } } } });
      });
      await expect(attempt).rejects.toThrow('is the table of the fences: only the guard writes to it');
    }
    const out = await fence.run(lease, (data) => ({ data }));
    if (out.status !== 'applied') throw new Error(out.status);
    const { data } = out.value;
    expect(() => {
      data.write(tables.put('a', 'b', 'c'));
    }).toThrow('is over');
    expect(() => dynamoFence(tables.db, { table: '' })).toThrow('table must be the name of a table');
    await expect(fence.open({ ...lease, token: 0n })).rejects.toThrow('token must be a bigint from 1');
    const nowhere = dynamoFence(tables.db, { table: 'nowhere' });
    await expect(nowhere.open(lease)).rejects.toMatchObject({ name: 'ResourceNotFoundException' });
  });

  it('knows the table of the fences by its name where it was given as an ARN', async () => {
    const arn = dynamoFence(tables.db, { table: `arn:aws:dynamodb:local:000000000000:table/${tables.fences}` });
    const attempt = arn.run(fresh(5), (data) => {
      data.write({ Delete: { TableName: tables.fences, Key: { domain: { S: 'other' } } } });
    });
    await expect(attempt).rejects.toThrow('is the table of the fences');
  });

  it('refuses an item without a token that came between, and leaves it alone', async () => {
    const lease = fresh(5);
    const item = { domain: { S: lease.domain }, issuer: { S: 'fencepost:other' } };
    let sent = 0;
    const damaged = sending(async (input) => {
      if (++sent === 2) await tables.db.putItem({ TableName: tables.fences, Item: item });
      return tables.db.transactWriteItems(input);
    });
    await expect(put(lease, 'one', 'x', damaged)).rejects.toThrow('token is no number');
    const { Item: after } = await tables.db.getItem({ TableName: tables.fences, Key: { domain: item.domain } });
    expect([after, await tables.read(lease.domain, 'one')]).toEqual([item, undefined]);
  });

  it.each([
    [{ token: { S: '5' } }, 'token is no number from 1 to 2^63 - 1'],
    [{ token: { N: '0.5' } }, 'token is no number from 1 to 2^63 - 1'],
    [{ token: { N: '9223372036854775808' } }, 'token is no number from 1 to 2^63 - 1'],
    [{ issuer: { S: '' }, incarnation: { N: '1' } }, 'issuer is no text; incarnation is no text'],
  ])('refuses an item that is no fence, and leaves it alone: %j', async (damage, message) => {
    const lease = fresh(5);
    const domain = { S: lease.domain };
    const item = { domain, token: { N: '5' }, issuer: { S: 'fencepost:test' }, incarnation: { S: 'a' }, ...damage };
    await tables.db.putItem({ TableName: tables.fences, Item: item });
    await expect(put({ ...lease, token: 6n }, 'one', 'x')).rejects.toThrow(message);
    await expect(fence.fence(lease.domain)).rejects.toThrow(`the item ${lease.domain} of table ${tables.fences}`);
    const { Item: after } = await tables.db.getItem({ TableName: tables.fences, Key: { domain } });
    expect(after).toEqual(item);
  });

  it('shows operators the fence, and that there is none', async () => {
    const lease = fresh(5);
    const { domain } = lease;
    expect([await fence.fence(domain), await fence.allowIssuer(domain, 'other')]).toEqual([undefined, false]);
    await fence.open(lease);
    expect(await fence.allowIssuer(domain, 'other')).toBe(true);
    expect(await fence.fence(domain)).toEqual({ token: 5n, issuer: 'fencepost:other', incarnation: INCARNATION });
    await fence.reset({ ...lease, token: 4n });
    expect(await fence.fence(domain)).toEqual({ token: 4n, issuer: 'fencepost:test', incarnation: INCARNATION });
  });

  it('has a statement for other languages in its documentation, which decides as the guard does', async () => {
    const [, set = '', condition = ''] =
      /\n```text\n(SET #token[^\n]+)\n\n([^`]+)\n```/.exec(readFileSync('src/guard/README.md', 'utf8')) ?? [];
    const fenceOf = fresh(1_000_000_000_000_000n);
    const advance = async (token: bigint, cluster = 'test', incarnation = INCARNATION): Promise<string> => {
      const values = {
        ':token': { N: token.toString() },
        ':floor': { N: (token - 631_152_000_000_000n).toString() },
        ':issuer': { S: `fencepost:${cluster}` },
        ':incarnation': { S: incarnation },
      };
      try {
        await tables.db.updateItem({
          TableName: tables.fences,
          Key: { domain: { S: fenceOf.domain } },
          UpdateExpression: set,
          ConditionExpression: condition,
          ExpressionAttributeNames: {
            '#domain': 'domain',
            '#token': 'token',
            '#issuer': 'issuer',
            '#incarnation': 'incarnation',
          },
          ExpressionAttributeValues: values,
          ReturnValuesOnConditionCheckFailure: 'ALL_OLD',
        });
        return 'applied';
      } catch (error) {
        return (error as { Item?: { token?: { N?: string } } }).Item?.token?.N ?? String(error);
      }
    };
    const { token } = fenceOf;
    expect(await advance(token)).toBe('applied');
    expect(await put(fenceOf, 'one', 'x')).toMatchObject({ status: 'applied' });
    const refused = token.toString();
    const given: [bigint, string?, string?][] = [[token], [token - 1n], [token + 1n, 'other'], [token, 'test', 'b']];
    const ends: string[] = [];
    for (const each of given) ends.push(await advance(...each));
    ends.push(await advance(token + 631_152_000_000_001n), await advance(token + 631_152_000_000_000n));
    expect(ends).toEqual(['applied', refused, refused, refused, refused, 'applied']);
  });

  it('outlives the server, with the data', { timeout: 120_000 }, async () => {
    const folder = await mkdtemp(join(tmpdir(), 'fencepost-dynamodb-'));
    try {
      const lease = leaseOf(6);
      let made: FencedTables;
      {
        await using first = await DynamoServer.start(folder);
        made = await FencedTables.create(first.url);
        const raised = made.fence().run(lease, (data) => {
          data.write(made.put('a', 'one', 'kept'));
        });
        expect(await raised).toMatchObject({ status: 'applied' });
        made.db.destroy();
      }
      await using second = await DynamoServer.start(folder);
      const again = made.at(second.url);
      const late = await again.fence().run(leaseOf(5), (data) => {
        data.write(again.put('a', 'one', 'late'));
      });
      expect(late).toEqual({ status: 'stale', fence: 6n });
      expect(await again.read('a', 'one')).toBe('kept');
      again.db.destroy();
    } finally {
      await rm(folder, { recursive: true, force: true });
    }
  });
});
