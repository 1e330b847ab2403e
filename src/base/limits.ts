/** Every limit and default of the product, in one place, with its unit in its name (design 8 and 13). */

/** Milliseconds between two ticks of the core. */
export const TICK_MS = 10;
/** Milliseconds between a leader's heartbeats. */
export const HEARTBEAT_MS = 100;
/** Least election time-out in milliseconds; the actual one is drawn between this and {@link ELECTION_MAX_MS}. */
export const ELECTION_MIN_MS = 500;
/** Greatest election time-out in milliseconds. */
export const ELECTION_MAX_MS = 1_000;

/** Default TTL of a lease in milliseconds. */
export const DEFAULT_TTL_MS = 15_000;
/** Greatest TTL: a day. */
export const MAX_TTL_MS = 86_400_000;
/** Bytes of a holder's name in UTF-8. */
export const MAX_HOLDER_BYTES = 255;
/** Bytes of a lease's metadata in UTF-8, keys and values together. */
export const MAX_METADATA_BYTES = 4_096;
/** Bytes of a force-release's note in UTF-8. */
export const MAX_NOTE_BYTES = 500;
/** Leases that one Renew may name. */
export const MAX_RENEW_LEASES = 1_000;

/** Domains of a List's page at most … */
export const MAX_PAGE_SIZE = 1_000;
/** … and when the call does not say. */
export const DEFAULT_PAGE_SIZE = 100;

/** Deadline of a client's call that set none, in milliseconds. */
export const DEFAULT_CALL_MS = 30_000;
/** Greatest deadline that a node honours; a longer one is cut to this. */
export const MAX_CALL_MS = 3_600_000;
/** Calls that a node without a leader holds at once. */
export const MAX_HELD_CALLS = 10_000;
/** How long a node without a leader holds a call: twice the greatest election time-out. */
export const HOLD_WITHOUT_LEADER_MS = 2 * ELECTION_MAX_MS;
/** A held call is answered this long before its deadline, so that the answer still arrives. */
export const ANSWER_BEFORE_DEADLINE_MS = 250;

/** One Acquire that is queued is held for at most this, half its TTL, and until shortly before its deadline (design 8). */
export const MAX_HOLD_MS = 20_000;
/** A waiter whom nobody has called for during this leaves the queue. */
export const WAITER_GRACE_MS = 5_000;
/** Greatest time in a queue: a day. */
export const MAX_WAIT_MS = 86_400_000;
/** Greatest cool-down. */
export const MAX_COOL_DOWN_MS = 600_000;

/** Waiters of one domain. Replicated, as are the next four: set by Genesis; `shared-limits.ts` has those that may change. */
export const MAX_QUEUE = 1_000;
/** Leases of one principal, together with its waiters. */
export const MAX_LEASES_PER_PRINCIPAL = 1_000_000;
/** Waiters of one principal. */
export const MAX_WAITERS_PER_PRINCIPAL = 100_000;
/** Names whose slots are counted; they are never forgotten. One principal may begin no more than are left for others. */
export const MAX_COUNTING_NAMES = 10_000;
/** Finished requests that the state keeps at least (design 7, F6). Replicated: set by Genesis. */
export const FINISHED_REQUESTS = 65_536;
/** Prefixes with a quota: each lease and each waiter is held against all of them. */
export const MAX_PREFIX_QUOTAS = 100;
/** Greatest value that a quota may have. */
export const MAX_QUOTA = 1_000_000_000;
/** What the state machine of a new cluster is limited by, unless it is configured otherwise. */
export const STATE_LIMITS = {
  finishedRequests: FINISHED_REQUESTS,
  queue: MAX_QUEUE,
  leasesPerPrincipal: MAX_LEASES_PER_PRINCIPAL,
  waitersPerPrincipal: MAX_WAITERS_PER_PRINCIPAL,
  countingNames: MAX_COUNTING_NAMES,
  prefixes: [],
} as const;
/** Bytes of payload that a leader may have appended and not yet committed before it refuses client commands. */
export const MAX_UNCOMMITTED_BYTES = 16 * 1024 * 1024;
/**
 * The part of {@link MAX_UNCOMMITTED_BYTES} and {@link MAX_HELD_CALLS} that acquires may fill: under overload they are
 * refused first, so that what keeps and ends leases still finds room (design 7).
 */
export const ACQUIRE_SHARE = 0.75;
/** Of the leases, the waiters and the cool-downs that a new leader finds, it takes up so many of each in one tick: some milliseconds of work. */
export const TIMED_PER_TICK = 5_000;
/** Entries that may be committed and not yet applied before a leader refuses client commands. */
export const MAX_UNAPPLIED_ENTRIES = 50_000;
/** Bytes of entries in one append message. */
export const MAX_APPEND_BYTES = 256 * 1024;
/** Append messages that may be under way to one follower. */
export const MAX_INFLIGHT_APPENDS = 64;
/** Bytes of entries that may be under way to one follower. */
export const MAX_INFLIGHT_BYTES = 4 * 1024 * 1024;
/** Bytes of an internal command (Expire, Checkpoint, Void) before it is split. */
export const MAX_INTERNAL_COMMAND_BYTES = 64 * 1024;

/** A cut of the state is due at this many bytes of changed records … */
export const CUT_BYTES = 256 * 1024;
/** … or this many milliseconds after the first change since the last cut. */
export const CUT_MS = 1_000;
/** Bytes of log kept behind a cut for slow followers; more than that and they get a snapshot. */
export const LOG_KEEP_BYTES = 8 * 1024 * 1024;
/** Bytes of log kept for the oldest snapshot being sent; more than that ends the transfer. */
export const LOG_KEEP_TRANSFER_BYTES = 256 * 1024 * 1024;
/** Bytes of one chunk of a snapshot. */
export const SNAPSHOT_CHUNK_BYTES = 256 * 1024;

/** A watcher hears at least "nothing happened" this often, in milliseconds; the API promises it every 10 s. */
export const WATCH_PROGRESS_MS = 5_000;
/** A watch whose start a node has not applied after this many milliseconds is ended: the node lags, or the start is none. */
export const WATCH_AHEAD_MS = 10_000;
/** What a node's watchers are limited by. */
export const WATCH_LIMITS = {
  /** Bytes of recent changes that a node keeps, once for all watchers: who falls behind further is told `compacted`. */
  ringBytes: 16 * 1024 * 1024,
  /** Bytes of changes in one message; one is under way to each watcher. A single revision may have more … */
  batchBytes: 32 * 1024,
  /** … and comes in several messages if it has more than this: stock clients refuse messages of 4 MiB. */
  messageBytes: 1024 * 1024,
  /** Watchers of one node, until their streams are closed … */
  watchers: 5_000,
  /** … and of one principal at one node. */
  watchersPerPrincipal: 1_000,
} as const;

/** A disk with less than this free makes new acquires fail (design 6). */
export const DISK_FLOOR_BYTES = 512 * 1024 * 1024;

/** Forming refuses members whose wall clocks differ by more than this. */
export const MAX_FORMING_CLOCK_SPREAD_MS = 10_000;
/** Forming refuses a clock later than the build date by more than this (20 years). */
export const MAX_CLOCK_AFTER_BUILD_MS = 20 * 365.25 * 86_400_000;
/** A floor may lie ahead of the clock by at most this (10 years), in microseconds. */
export const MAX_FLOOR_AHEAD_US = 10 * 365.25 * 86_400_000_000;
/** A leader whose next revision comes within this of the clock warns (one hour), in microseconds. */
export const MIN_REVISION_HEADROOM_US = 3_600_000_000;

/** Rate error of clocks that the contract allows, as a fraction (contract 3). */
export const CLOCK_DRIFT = 0.01;
/** Added by the leader to a lease's time, in milliseconds (design 7, Time). */
export const EXPIRY_MARGIN_MS = 100;

/** No clock that reads earlier than this release can be right (forming refuses): 2026-12-01, milliseconds since 1970. */
export const BUILD_DATE_UNIX_MS = 1_796_083_200_000;
