/** DynamoDB: workers reach the server themselves, through its real client. */
import { describe, it } from 'vitest';
import { createTable, DYNAMODB, DynamoServer, openDynamo } from '../../servers/dynamodb.js';
import { FENCES, TEXTS, toDynamo } from './dynamodb.js';
import { describeStaleHolder } from './frame.js';
import type { RunningResource } from './resource.js';

async function startDynamo(): Promise<RunningResource> {
  const server = await DynamoServer.start();
  const db = openDynamo(server.url);
  await createTable(db, FENCES, 'domain');
  await createTable(db, TEXTS, 'id');
  db.destroy();
  return {
    where: { kind: 'dynamodb', url: server.url },
    read: () => toDynamo(server.url, false).read(),
    [Symbol.asyncDispose]: () => server[Symbol.asyncDispose](),
  };
}

if (DYNAMODB.isHere) describeStaleHolder(DYNAMODB.name, startDynamo);
else {
  describe('DynamoDB', () => {
    it.skip(`a worker that was stopped past its TTL: ${DYNAMODB.name}`);
  });
}
