/** The fences of the DynamoDB guard as items of a table, and the actions of a transaction that compare and raise them. */
import { fenceOf, isToken } from './fence.js';
import type { Fence } from './fence.js';
import type { FencedLease } from './types.js';

/** The part of a client that the guard uses. `DynamoDB` of `@aws-sdk/client-dynamodb` 3 fits; `W` is its `TransactWriteItem`. */
export interface DynamoClient<W> {
  /** Reads one item. */
  getItem(input: {
    readonly TableName: string;
    readonly Key: Record<string, { S: string }>;
    readonly ConsistentRead: boolean;
  }): Promise<{ readonly Item?: object | undefined }>;
  /** Carries out all actions, or none; the same token again within ten minutes is the same transaction. */
  transactWriteItems(input: {
    readonly TransactItems: W[] | undefined;
    readonly ClientRequestToken?: string | undefined;
  }): Promise<unknown>;
}

/** Which table an action is on. */
export interface DynamoAction {
  /** The name of the table, or its ARN. */
  readonly TableName: string | undefined;
}

/** One action of a transaction, as far as the guard looks into it: one of these. */
export interface DynamoWrite {
  /** Asks for something, and changes nothing. */
  readonly ConditionCheck?: DynamoAction | undefined;
  /** Writes a whole item. */
  readonly Put?: DynamoAction | undefined;
  /** Changes an item. */
  readonly Update?: DynamoAction | undefined;
  /** Removes an item. */
  readonly Delete?: DynamoAction | undefined;
}

/** Some of these are reserved words in DynamoDB. */
const NAMES = { '#token': 'token', '#issuer': 'issuer', '#incarnation': 'incarnation' };
const STANDS = '#token = :token and #issuer = :issuer and #incarnation = :incarnation';

/** An attribute as DynamoDB has it; numbers are text, so all their digits are there. */
type Attribute = { readonly S: string } | { readonly N: string };

function attributesOf({ token, issuer, incarnation }: Fence): Record<string, Attribute> {
  return { token: { N: token.toString() }, issuer: { S: issuer }, incarnation: { S: incarnation } };
}

/** That the fence is this one, undefined for none. */
function conditionOf(fence: Fence | undefined): object {
  const common = { ReturnValuesOnConditionCheckFailure: 'ALL_OLD', ExpressionAttributeNames: NAMES };
  if (fence === undefined) {
    // The key: an item without a token is a damaged fence, and nothing to write over.
    const names = { '#domain': 'domain' };
    return { ...common, ConditionExpression: 'attribute_not_exists(#domain)', ExpressionAttributeNames: names };
  }
  const values = Object.entries(attributesOf(fence)).map(([name, value]) => [`:${name}`, value] as const);
  return { ...common, ConditionExpression: STANDS, ExpressionAttributeValues: Object.fromEntries(values) };
}

/** Stores `fence`; with `seen`, only over that. */
export function storing(table: string, domain: string, fence: Fence, seen?: { readonly fence: Fence | undefined }) {
  const item = { domain: { S: domain }, ...attributesOf(fence) };
  return { Put: { TableName: table, Item: item, ...(seen === undefined ? {} : conditionOf(seen.fence)) } };
}

/** Lets the transaction pass only where the fence stands at this lease already; changes nothing. */
export function standing(table: string, lease: FencedLease) {
  const key = { domain: { S: lease.domain } };
  return { ConditionCheck: { TableName: table, Key: key, ...conditionOf(fenceOf(lease)) } };
}

/** Reads a fence back. Throws, with every fault, when the item is none: nothing is guessed. */
export function fenceIn(table: string, domain: string, item: unknown): Fence | undefined {
  if (item === undefined) return undefined;
  const fields = item as Readonly<Record<string, { readonly S?: unknown; readonly N?: unknown } | undefined>>;
  const { token, issuer, incarnation } = fields;
  const faults: string[] = [];
  const digits = token?.N;
  if (!isToken(digits)) faults.push('token is no number from 1 to 2^63 - 1');
  if (typeof issuer?.S !== 'string' || issuer.S === '') faults.push('issuer is no text');
  if (typeof incarnation?.S !== 'string') faults.push('incarnation is no text');
  if (faults.length === 0) {
    return { token: BigInt(digits as string), issuer: issuer?.S as string, incarnation: incarnation?.S as string };
  }
  throw new Error(
    `the item ${domain} of table ${table} is no fence: ${faults.join('; ')}. Nothing was changed. Set it right with reset, and ` +
      'the lease that was granted last',
  );
}

/** Why each action of a cancelled transaction was not carried out; undefined for every other error. */
export function reasonsOf(error: unknown): readonly { readonly Code?: string; readonly Item?: unknown }[] | undefined {
  if (!(error instanceof Error) || error.name !== 'TransactionCanceledException') return undefined;
  if (!('CancellationReasons' in error) || !Array.isArray(error.CancellationReasons)) return undefined;
  return error.CancellationReasons as readonly { readonly Code?: string; readonly Item?: unknown }[];
}
