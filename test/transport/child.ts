/** Member n2 of the kill test: sends heartbeats to n1 until it is killed. */
import { randomBytes } from 'node:crypto';
import type { BootId } from '../../src/base/ids.js';
import type { MemberAddress } from '../../src/replica/types.js';
import { createTransport } from '../../src/transport/transport.js';
import { addressOf, INCARNATION, member } from './harness.js';

const peers = JSON.parse(process.argv[2] ?? '[]') as MemberAddress[];
const self = member('n2');
const transport = createTransport({
  node: self.node,
  peers,
  bind: addressOf(peers, 'n2'),
  listener: () => undefined,
  onForm: () => Promise.reject(new Error('does not form')),
  openSnapshot: () => {
    throw new Error('has no snapshot');
  },
  log: () => undefined,
});
await transport.listen();
const boot = randomBytes(16).toString('hex') as BootId;
transport.activate({ cluster: 'test', incarnation: INCARNATION, ...self, boot, format: 1 });
let round = 0;
setInterval(() => {
  round += 1;
  const message = { type: 'heartbeat', from: self, to: member('n1'), term: 1, commit: 0, round } as const;
  transport.perform({ type: 'send', message });
}, 20);
// An orphan must not outlive its test.
process.on('disconnect', () => process.exit());
