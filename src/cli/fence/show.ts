import { EXIT, type Io } from '../io.js';
import { type Cell, table } from '../table.js';
import type { FenceStore, Observation, StoredFence } from './store.js';
import { dateOf, fenceJson, orDash } from './views.js';

/** `fence show [domain]`. */
export async function show(store: FenceStore, domain: string | undefined, io: Io, json: boolean): Promise<number> {
  const fences = await fencesOf(store, domain);
  const observed = await store.observed(domain);
  if (json) {
    const counts = observed.map((each) => ({ ...each, count: String(each.count) }));
    io.out(JSON.stringify({ resource: store.name, fences: fences.map(fenceJson), observed: counts }));
  } else {
    if (fences.length > 0) io.out(asTable(fences, io.colour));
    else io.err(`fence show: ${domain === undefined ? 'there is no fence yet' : noFence(domain)}`);
    if (observed.length > 0) io.out(`\n${observedTable(observed, io.colour)}`);
  }
  return domain !== undefined && fences.length === 0 ? EXIT.no : EXIT.ok;
}

/** Why a domain is not shown or reset. */
export function noFence(domain: string): string {
  return `${domain} has no fence: nobody has advanced it here; fencepost fence show lists those that have one`;
}

async function fencesOf(store: FenceStore, domain: string | undefined): Promise<readonly StoredFence[]> {
  if (domain !== undefined) {
    const fence = await store.fence(domain);
    return fence === undefined ? [] : [fence];
  }
  const fences: StoredFence[] = [];
  for await (const fence of store.fences()) fences.push(fence);
  return fences;
}

function asTable(fences: readonly StoredFence[], colour: boolean): string {
  const columns = ['domain', 'token', 'granted at', 'issuer', 'incarnation', 'raised at'];
  return table(
    columns.map((title) => ({ title, numeric: title === 'token' })),
    fences.map(({ domain, token, issuer, incarnation, raisedAt }): readonly Cell[] => [
      { text: domain, tone: 'strong' },
      String(token),
      orDash(dateOf(token)),
      orDash(issuer),
      orDash(incarnation),
      orDash(raisedAt),
    ]),
    colour,
  );
}

function observedTable(observed: readonly Observation[], colour: boolean): string {
  const columns = ['observed at', 'operation', 'code', 'domain', 'role', 'application', 'count', 'first', 'last'];
  return table(
    columns.map((title) => ({ title, numeric: title === 'count' })),
    observed.map((each): readonly Cell[] => [
      each.relation,
      each.operation,
      { text: each.code, tone: 'bad' },
      orDash(each.domain === '' ? undefined : each.domain),
      each.role,
      orDash(each.application === '' ? undefined : each.application),
      String(each.count),
      each.firstAt,
      each.lastAt,
    ]),
    colour,
  );
}
