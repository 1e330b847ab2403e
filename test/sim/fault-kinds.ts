/** The kinds of faults, and how often each is drawn. */

/** What can be done to the network between the members. */
export type NetworkFaultKind =
  | 'halves'
  | 'isolate'
  | 'isolate leader'
  | 'one way'
  | 'bridge'
  | 'ring'
  | 'random links'
  | 'swizzle'
  | 'clog'
  /** The first member, which writes the record of a new history, hears all; the others hear that one only. */
  | 'star'
  /** Alive, but connects to it are refused and its connections end. */
  | 'refuse';

/** What is done in several steps, each at its moment. */
export type SequenceFaultKind =
  /** All machines lose power at once, and have it again at once. */
  | 'outage'
  /** A hand-over whose target is gone when it is told to take over. */
  | 'transfer cut short'
  /** The leader is not heard, and then, with the first one back, the one that came after it. */
  | 'leaders in turn'
  /** A follower needs a snapshot, and its disk stalls when it installs it. */
  | 'stall at an install'
  /** A follower whose disk stalls is sent a snapshot of what waits there to be written. */
  | 'transfer behind a stall';

/** What can be done to a world. */
export type FaultKind =
  /** A process is killed, or its machine loses power; it starts again after `ms`. */
  | 'kill'
  | 'power'
  /** As `power`, but at the next moment at which a write of that member is under way. */
  | 'power at a write'
  /** As `power` or `kill`, at the n-th operation from now that writes to the disk, each as likely as the others. */
  | 'power at an operation'
  /** As that, at an operation of the next conflict cut, or of a snapshot's way to a disk. */
  | 'power at a switch'
  /** The leader is cut off until its log ends where the others have none any more, and loses power when it is back. */
  | 'leave behind'
  /** All members at once. */
  | 'kill all'
  /** Told to stop, as by SIGTERM; starts again. */
  | 'stop'
  /** The process stands still, what arrives waits for it (SIGSTOP). */
  | 'pause'
  /** The machine sleeps: its monotonic clock stands. */
  | 'suspend'
  | 'wall jump'
  /** No write ends for `ms`. */
  | 'disk stall'
  | 'EIO'
  | 'ENOSPC'
  /** The disk has less room than the limit for `ms`. */
  | 'disk low'
  | NetworkFaultKind
  /** The next leader with entries that are not committed, until another one leads. */
  | 'isolate busy leader'
  | SequenceFaultKind
  /** An operator hands leadership over. */
  | 'transfer'
  /** A minority of the disks may be lost for good or damaged, or come back as they once were. */
  | 'wipe'
  /** A disk is lost that holds no member yet: forming may list its directory, and then it is no member. */
  | 'wipe while new'
  | 'roll back'
  | 'flip'
  /** Every disk is lost, and the cluster formed again under its name. */
  | 'form again'
  | 'client pause'
  | 'client suspend'
  | 'client wall jump'
  | 'client cut';

/** How often each kind is drawn, where a run about everything has it at all. */
export const FAULT_WEIGHTS: readonly (readonly [FaultKind, number])[] = [
  ['kill', 6],
  ['power', 6],
  ['power at a write', 8],
  ['kill all', 1],
  ['stop', 3],
  ['pause', 8],
  ['suspend', 2],
  ['wall jump', 2],
  ['disk stall', 5],
  ['EIO', 2],
  ['ENOSPC', 1],
  ['disk low', 1],
  ['halves', 4],
  ['isolate', 4],
  ['isolate leader', 8],
  ['isolate busy leader', 4],
  ['one way', 5],
  ['bridge', 2],
  ['ring', 2],
  ['random links', 3],
  ['swizzle', 2],
  ['clog', 5],
  ['refuse', 4],
  ['outage', 0.5],
  ['transfer cut short', 1],
  ['leaders in turn', 1],
  ['stall at an install', 1],
  ['transfer behind a stall', 1],
  ['transfer', 4],
  ['wipe', 0.8],
  ['roll back', 1.5],
  ['flip', 0.8],
  ['form again', 0.8],
  ['client pause', 5],
  ['client suspend', 5],
  ['client wall jump', 4],
  ['client cut', 3],
];
