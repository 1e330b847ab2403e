/** The disk floor (design 6): three nodes hold the same data and fill up together, so the leader looks at all. */
import { step } from '../raft/raft.js';
import { followers } from '../raft/view.js';
import { log } from './state.js';
import type { Context } from './state.js';

/** True when acquires with unknown ids are refused: the leader, or so many voters that no majority is left, have too little. */
export function diskIsLow(context: Context): boolean {
  if (ownDiskLow(context)) return true;
  const voters = followers(context.raft).filter((each) => each.voter);
  const low = voters.filter((each) => each.diskLow).length;
  const all = voters.length + 1;
  return all - low < Math.floor(all / 2) + 1;
}

/** Free space was measured. */
export function takeDiskFree(context: Context, bytes: number): void {
  const before = ownDiskLow(context);
  context.diskFree = bytes;
  const low = ownDiskLow(context);
  if (low === before) return;
  step(context.raft, { type: 'diskLow', low });
  const floor = context.options.diskFloorBytes;
  if (low) {
    const text = `${bytes} bytes are free on the data disk, less than the floor of ${floor}: new leases are refused; free space`;
    context.alarms.set('disk', text);
    log(context, 'warn', text);
  } else {
    context.alarms.delete('disk');
    log(context, 'info', 'the data disk has enough free space again', { free: bytes, floor });
  }
}

function ownDiskLow(context: Context): boolean {
  return context.diskFree !== undefined && context.diskFree < context.options.diskFloorBytes;
}
