/** Stock gRPC calls of one client, each noted as it begins and as it ends. */
import { setTimeout as pause } from 'node:timers/promises';
import type { Answer } from '../../../src/base/api.js';
import { nextInt } from '../../../src/base/random.js';
import type { Random } from '../../../src/base/random.js';
import { ZERO_REVISION } from '../../../src/base/revision.js';
import type { Revision } from '../../../src/base/revision.js';
import { now } from './clock.js';
import type { ClientCall, ClientEvent } from './events.js';
import type { Notebook } from './notebook.js';
import type { StockChannels } from './stock-channel.js';

/** A call without an answer is sent so often. */
const ATTEMPTS = 4;

/** What a client without the library needs. */
export interface CallPorts {
  readonly name: string;
  readonly channels: StockChannels;
  readonly notebook: Notebook<ClientEvent>;
  readonly random: Random;
  readonly stopped: () => boolean;
}

/** See the head of the file. */
export class NotedCalls {
  readonly #ports: CallPorts;
  #calls = 0;

  constructor(ports: CallPorts) {
    this.#ports = ports;
  }

  /** The greatest revision that an answer to this process showed. */
  get seenRevision(): Revision {
    return this.#ports.channels.seenRevision;
  }

  /** The same call until it is answered, on any nodes, now and then twice at once. */
  async repeat(call: ClientCall): Promise<Answer | undefined> {
    const { random } = this.#ports;
    for (let attempt = 0; attempt < ATTEMPTS; attempt++) {
      const copies = nextInt(random, 0, 3) === 0 ? 2 : 1;
      const answers = await Promise.all(Array.from({ length: copies }, () => this.send(call)));
      const answer = answers.find((each) => each !== undefined);
      if (answer !== undefined) return answer;
      await pause(nextInt(random, 20, 200));
    }
    return undefined;
  }

  /** One call to any node. A renewal of many leases is noted as one of each, which is how it is judged. */
  async send(call: ClientCall): Promise<Answer | undefined> {
    const { name, channels, notebook, random } = this.#ports;
    const op = `${name}/${this.#calls++}`;
    const parts: readonly ClientCall[] =
      call.type === 'renew' ? call.leases.map((lease) => ({ type: 'renew', leases: [lease] })) : [call];
    const node = nextInt(random, 0, channels.size - 1);
    const from = now();
    for (const [at, part] of parts.entries())
      notebook.note({ type: 'began', at: from, op: `${op}#${at}`, actor: name, node, call: part });
    const timeoutMs = nextInt(random, 0, 3) === 0 ? 4_000 : 1_500;
    const reply = await channels.send(node, call, timeoutMs);
    const end = { type: 'ended', at: now() } as const;
    for (const at of parts.keys()) {
      if (reply.type === 'answer') {
        const { answer: whole, revision } = reply;
        const answer: Answer =
          whole.type === 'renew' ? { type: 'renew', results: whole.results.slice(at, at + 1) } : whole;
        notebook.note({ ...end, op: `${op}#${at}`, answer, revision, failed: undefined, reason: '' });
      } else {
        const { outcome: failed, reason } = reply;
        notebook.note({ ...end, op: `${op}#${at}`, answer: undefined, revision: ZERO_REVISION, failed, reason });
      }
    }
    return reply.type === 'answer' ? reply.answer : undefined;
  }
}
