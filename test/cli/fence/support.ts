/** `fencepost fence` with the drivers of the test servers. */
import { resolve } from 'node:path';
import type { Finding } from '../../../src/cli/fence/store.js';
import type { PostgresServer } from '../../servers/postgres.js';
import { run } from '../kit.js';
import type { Replies, Run } from '../kit.js';

/** A project that has the drivers. */
export const FOLDER = resolve('test/servers');

/** Runs `fencepost fence …`. */
export function fence(line: string, replies?: Replies, folder = FOLDER): Promise<Run> {
  return run(`fence ${line}`, replies, { folder });
}

export function addressOf({ connection }: PostgresServer): string {
  return `postgres://${connection.user}@${connection.host}:${connection.port}/${connection.database}`;
}

interface Report {
  readonly resource: string;
  readonly fences: number | null;
  readonly cluster: { readonly name: string; readonly revision: string } | null;
  readonly floors: readonly { readonly issuer: string | null; readonly floor: string; readonly date: string | null }[];
  readonly findings: readonly Finding[];
}

/** Runs doctor, and gives what it found as `code subject`, sorted. */
export async function doctor(at: string, more = '', replies?: Replies, folder = FOLDER) {
  const { code, out, err } = await fence(`doctor --json --at ${at} ${more}`, replies, folder);
  const report = JSON.parse(out === '' ? JSON.stringify({ findings: [], err }) : out) as Report;
  const named = (weight: Finding['weight']): string[] =>
    report.findings
      .filter((each) => each.weight === weight)
      .map((each) => `${each.code} ${each.subject}`)
      .sort();
  return { code, report, faults: named('fault'), notes: named('note') };
}
