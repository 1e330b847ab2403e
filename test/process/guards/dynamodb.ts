/** One text in DynamoDB, for workers: through the guard, and as the same program would write it without one. */
import { dynamoFence } from '../../../src/guard/dynamodb.js';
import { openDynamo } from '../../servers/dynamodb.js';
import type { Connection } from './resource.js';

export const FENCES = 'fences';
export const TEXTS = 'texts';
const KEY = { id: { S: 'text' } };

export function toDynamo(url: string, guarded: boolean): Connection {
  const db = openDynamo(url);
  const fence = dynamoFence(db, { table: FENCES });
  return {
    open: async (lease) => (guarded ? (await fence.open(lease)).status : 'applied'),
    async read() {
      const { Item: item } = await db.getItem({ TableName: TEXTS, Key: KEY, ConsistentRead: true });
      return item?.['text']?.S ?? '';
    },
    async write(lease, value) {
      const put = { TableName: TEXTS, Item: { ...KEY, text: { S: value } } };
      if (guarded) {
        const done = await fence.run(lease, (data) => {
          data.write({ Put: put });
        });
        return done.status;
      }
      await db.putItem(put);
      return 'applied';
    },
  };
}
