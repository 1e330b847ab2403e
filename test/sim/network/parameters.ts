/** What a simulated network does by itself, apart from the faults that a run injects. */

/**
 * Chances are per mille and concern core messages only, unless they say otherwise: everything else travels over streams
 * that keep what they carry.
 */
export interface NetworkParameters {
  /** Milliseconds that anything is under way, at least and at most. */
  readonly latencyMs: readonly [number, number];
  /** Chance that something takes {@link SPIKE_FACTOR} times as long. */
  readonly spikeChance: number;
  readonly loss: number;
  readonly duplicate: number;
  /** With each message, the chance that an earlier one between the same two comes again. */
  readonly replay: number;
  /** Core messages overtake one another. */
  readonly reorder: boolean;
  /** Chance that a chunk of a snapshot, but the last, comes twice: no transport does that, a sender with a mistake might. */
  readonly chunkTwice: number;
  /** A stream whose other end is silent for so long is given up, by each end for itself, not before half of it. */
  readonly keepAliveMs: number;
  /** About how many bytes of records a snapshot chunk carries. */
  readonly chunkBytes: number;
  /** Parts that may be under way on a lane, and as many that may wait behind them; more are dropped. */
  readonly room: number;
  /** Everything is encoded and decoded on its way, as in production. Otherwise objects are passed on as they are. */
  readonly codecs: boolean;
}

/** See {@link NetworkParameters.spikeChance}. */
export const SPIKE_FACTOR = 20;
