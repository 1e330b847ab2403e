/** The kit over HTTP: every operation is a request of the client to a service of each framework, in front of two stores. */
import { describe, it } from 'vitest';
import { fencedFetch } from '../../src/guard/http.js';
import { HTTP } from '../servers/http.js';
import type { HttpFramework } from '../servers/http.js';
import { builtModule } from './killed.js';
import { freshLevelStore, memoryStore } from './served-store.js';
import { CRASH_BEGINS, IN_PROCESS_SKIPS, ServiceStore } from './service-store.js';
import type { Transport } from './service-store.js';
import { describeConformance } from './suite.js';

/** A service that stops within its guarded work, and the request that it never answers. */
const CRASH = `
  import { createServer } from 'node:http';
  import { fencedFetch, nodeFencing } from '${builtModule('guard/http.js')}';
  ${CRASH_BEGINS}
  const fencing = nodeFencing({ domains: () => lease.domain });
  const server = createServer(async (request, response) => {
    const leases = await fencing.admit(request, response);
    await guard.run(leases, async (data) => {
      data.put(lease.domain + ' ' + item, value);
      process.stdout.write('checked');
      await new Promise(() => setInterval(() => {}, 1000));
    });
  });
  server.listen(0, '127.0.0.1', () => {
    fencedFetch(lease)('http://127.0.0.1:' + server.address().port, { method: 'POST' });
  });`;

function transportOf(start: NonNullable<HttpFramework['start']>): Transport {
  return {
    crash: CRASH,
    async start(service) {
      const listening = await start(service);
      const { url } = listening;
      return {
        call: (leases, address) => fencedFetch(leases)(url + address, { method: 'POST' }),
        async plainly(address) {
          const response = await fetch(url + address, { method: 'POST' });
          if (!response.ok) throw new Error(await response.text());
        },
        [Symbol.asyncDispose]: () => listening[Symbol.asyncDispose](),
      };
    },
  };
}

describe.each(HTTP)('$name', ({ name, start }) => {
  if (start === undefined) {
    it.skip('passes the conformance kit');
    return;
  }
  const transport = transportOf(start);
  // The adapters are thin, and what races is behind them: all rounds in front of one.
  const options = name === HTTP[0]?.name ? {} : { rounds: 100 };
  const inProcess = { create: () => ServiceStore.create(transport, memoryStore(), true), skips: IN_PROCESS_SKIPS };
  describeConformance({ name: 'HTTP, in-process', ...inProcess }, options);
  const level = { create: async () => ServiceStore.create(transport, await freshLevelStore(), false) };
  describeConformance({ name: 'HTTP, LevelDB', ...level }, options);
});
