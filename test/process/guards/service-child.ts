/**
 * A service in front of a store that it owns, over HTTP or gRPC.
 *
 *     POST /open
 *     POST /write?value=…
 *     POST /write-unguarded?value=…
 *     POST /read
 */
import type { Outcome } from '../../../src/guard/types.js';
import { startGrpc } from '../../servers/grpc.js';
import { HTTP } from '../../servers/http.js';
import { orderOf } from '../chaos/orders.js';
import { STORES } from './stores.js';
import type { StoreKind } from './stores.js';

/** What the service is started with. */
export interface ServiceOrder {
  /** `gRPC`, or one of those for HTTP. */
  readonly framework: string;
  readonly kind: StoreKind;
  /** The package whose guard it uses. */
  readonly package: string;
  readonly directory: string;
  /** Of all its guarded requests. */
  readonly domain: string;
}

const order = orderOf() as ServiceOrder;
// An orphan must not outlive its test.
process.on('disconnect', () => process.exit());

const store = await STORES[order.kind](order.package, order.directory);
const start = order.framework === 'gRPC' ? startGrpc : HTTP.find(({ name }) => name === order.framework)?.start;
const service = await start?.({
  domains: ({ pathname }) => (pathname === '/open' || pathname === '/write' ? [order.domain] : []),
  async handle({ pathname, searchParams }, [lease]): Promise<Outcome<unknown>> {
    const value = searchParams.get('value') ?? '';
    if (lease !== undefined) {
      const outcome = await (pathname === '/open' ? store.open(lease) : store.write(lease, value));
      return outcome as Outcome<unknown>;
    }
    if (pathname === '/write-unguarded') await store.writeUnguarded(value);
    const text = pathname === '/read' ? await store.read() : undefined;
    return { status: 'applied', value: text, earlierIncarnation: undefined };
  },
});
process.send?.({ type: 'listening', url: service?.url });
