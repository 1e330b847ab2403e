import { UnexpectedAnswerError } from '../../client/errors.js';
import { withCluster } from '../endpoints.js';
import { EXIT, type Io } from '../io.js';
import { type Cell, pairs, toned } from '../table.js';
import { aboveCluster, type ComparedCluster, type Floor, floorsOf, greatestFloor, poisoned } from './floor.js';
import type { FenceStore, Finding, StoredFence } from './store.js';
import { dateOf, tokenText } from './views.js';

/** Where the cluster to compare with is. */
interface Where {
  readonly endpoints: readonly string[];
  readonly timeoutMs: number;
}

interface Report {
  readonly resource: string;
  /** Undefined where they cannot be read. */
  readonly fences: number | undefined;
  readonly cluster: ComparedCluster | undefined;
  readonly floors: readonly Floor[];
  readonly findings: readonly Finding[];
}

/** `fence doctor`: exit code 0 when there is nothing to mend. */
export async function examine(store: FenceStore, where: Where | undefined, io: Io, json: boolean): Promise<number> {
  const { findings, readable } = await store.diagnose();
  const fences: StoredFence[] = [];
  if (readable) for await (const fence of store.fences()) fences.push(fence);
  // After the fences, so that none of them can have been granted since.
  const cluster = where === undefined ? undefined : await clusterAt(where, io);
  const limit = greatestFloor(Date.now());
  const all = [
    ...findings,
    ...poisoned(fences, limit),
    ...(cluster === undefined ? [] : aboveCluster(fences, cluster, limit)),
  ];
  const report: Report = {
    resource: store.name,
    fences: readable ? fences.length : undefined,
    cluster,
    floors: floorsOf(fences, limit),
    findings: all.toSorted((a, b) => Number(a.weight === 'note') - Number(b.weight === 'note')),
  };
  if (json) io.out(JSON.stringify(asJson(report)));
  else show(report, io);
  return all.some(({ weight }) => weight === 'fault') ? EXIT.no : EXIT.ok;
}

/** Linearizable: a follower that lags would make a poison token of a good one. */
async function clusterAt(where: Where, io: Io): Promise<ComparedCluster> {
  return await withCluster(io, where, async (cluster) => {
    const { header } = await cluster.call({
      type: 'list',
      prefix: '',
      pageSize: 1,
      after: '',
      freshness: 'linearizable',
    });
    if (header === undefined) throw new UnexpectedAnswerError('the answer does not say up to which revision it is');
    return { name: header.cluster, revision: BigInt(header.revision) };
  });
}

function show({ resource, fences, cluster, floors, findings }: Report, io: Io): void {
  const faults = findings.filter(({ weight }) => weight === 'fault').length;
  const rows: (readonly [string, Cell])[] = [
    ['resource', resource],
    ['fences', fences === undefined ? { text: 'cannot be read', tone: 'bad' } : String(fences)],
    ...(cluster === undefined
      ? []
      : [['cluster', `${cluster.name}, revision ${tokenText(cluster.revision)}`] as const]),
    ...floors.map(({ issuer, floor }) => ['floor', `${tokenText(floor)}, ${issuer ?? 'no issuer named'}`] as const),
    ['found', faults === 0 ? { text: 'nothing', tone: 'good' } : { text: String(faults), tone: 'bad' }],
  ];
  io.out(pairs(rows, io.colour));
  for (const { code, subject, message, weight } of findings) {
    const head = weight === 'note' ? toned(`note: ${code}`, 'dim', io.colour) : toned(code, 'bad', io.colour);
    io.out(`\n${head}: ${toned(subject, 'strong', io.colour)}\n  ${message}`);
  }
}

function asJson({ resource, fences, cluster, floors, findings }: Report): unknown {
  return {
    resource,
    fences: fences ?? null,
    cluster: cluster === undefined ? null : { name: cluster.name, revision: String(cluster.revision) },
    floors: floors.map(({ issuer, floor }) => ({
      issuer: issuer ?? null,
      floor: String(floor),
      date: dateOf(floor) ?? null,
    })),
    findings,
  };
}
