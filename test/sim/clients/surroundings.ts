/** The production client's surroundings over a simulated machine. */
import { parseRequestId } from '../../../src/base/ids.js';
import type { RequestId } from '../../../src/base/ids.js';
import type { Random } from '../../../src/base/random.js';
import { nextUint32 } from '../../../src/base/random.js';
import type { Surroundings } from '../../../src/client/surroundings.js';
import { hexId } from '../chance.js';
import type { ClientProcess } from './process.js';

/** The steps in which the uptime counts, in milliseconds: those of `/proc/uptime`, and what the client assumes of it. */
const UPTIME_QUANTUM_MS = 10;
const UPTIME_STEP_MS = 16;
/** By how much a client may read too little time after a suspend that its uptime did not clearly show. */
export const UPTIME_SLACK_MS = UPTIME_QUANTUM_MS + UPTIME_STEP_MS;

/** {@link Surroundings} that count what the client leaves behind. */
export interface ClientSurroundings extends Surroundings {
  /** Timers of the client that have neither fired nor been cancelled. */
  openTimers(): number;
}

/** See the head of the file. */
export function clientSurroundings(process: ClientProcess, random: Random): ClientSurroundings {
  const { machine } = process;
  let timers = 0;
  return {
    openTimers: () => timers,
    clocks: {
      read: () => ({
        monotonicMs: machine.monotonicMs,
        uptimeMs: Math.floor(machine.uptimeMs / UPTIME_QUANTUM_MS) * UPTIME_QUANTUM_MS,
        wallMs: machine.wallMs,
      }),
      uptimeStepMs: () => UPTIME_STEP_MS,
    },
    timers: {
      set: (delayMs, fire) => {
        let open = true;
        const close = (): void => {
          if (open) timers--;
          open = false;
        };
        timers++;
        const cancel = process.after(delayMs, () => {
          close();
          fire();
        });
        return () => {
          close();
          cancel();
        };
      },
    },
    random: () => nextUint32(random) / 2 ** 32,
    newRequestId: () => requestId(random),
  };
}

/** A request id of the seed. */
export function requestId(random: Random): RequestId {
  const hex = hexId(random);
  const parts = [hex.slice(0, 8), hex.slice(8, 12), `4${hex.slice(13, 16)}`, `8${hex.slice(17, 20)}`, hex.slice(20)];
  const id = parseRequestId(parts.join('-'));
  if (id === undefined) throw new Error('no UUID');
  return id;
}
