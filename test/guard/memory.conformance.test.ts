import { memoryFence } from '../../src/guard/memory.js';
import type { FencedLease, MemoryWork } from '../../src/guard/memory.js';
import type { GuardedStore, GuardSubject } from '../../src/guard/conformance/index.js';
import { describeConformance } from './suite.js';

type Rows = Map<string, string>;

const ENDS = 'fences and data are lost together with the process';

function create(): GuardedStore {
  const rows: Rows = new Map();
  const fence = memoryFence(rows);
  const row = (domain: string, item: string): string => `${domain} ${item}`;
  const put =
    (domain: string, item: string, value: string, between: () => Promise<void>): MemoryWork<Rows, void> =>
    async (act) => {
      await between();
      await act((data) => {
        data.set(row(domain, item), value);
      });
    };
  return {
    async open(lease) {
      const opened = await fence.open(lease);
      if (opened.status !== 'applied') return opened;
      return {
        ...opened,
        value: { write: (item, value, between) => opened.value.run(put(lease.domain, item, value, between)) },
      };
    },
    write: (lease, item, value, between) => fence.run(lease, put(lease.domain, item, value, between)),
    read: (domain, item) => Promise.resolve(rows.get(row(domain, item))),
    close: () => Promise.resolve(),
    remove: (lease, item) => fence.run(lease, (act) => act((data) => data.delete(row(lease.domain, item)))),
    writeAll: (leases: readonly FencedLease[], item, value) =>
      fence.run(leases, (act) =>
        act((data) => {
          for (const { domain } of leases) data.set(row(domain, item), value);
        }),
      ),
    maxJump: 631_152_000_000_000n,
    reset(lease) {
      fence.reset(lease);
      return Promise.resolve();
    },
    allowIssuer(domain, cluster) {
      fence.allowIssuer(domain, cluster);
      return Promise.resolve();
    },
  };
}

const MEMORY: GuardSubject = {
  name: 'in-process',
  create: () => Promise.resolve(create()),
  skips: {
    'crash between check and commit': ENDS,
    restart: ENDS,
    'lost response': 'a call within a process has no answer that could be lost',
    'passage of time': 'no fence is ever taken out of memory',
    'write without a lease': 'the guard sees only what passes through it',
  },
};

describeConformance(MEMORY);
