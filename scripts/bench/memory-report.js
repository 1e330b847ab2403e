/** Loaded into a node of a benchmark ahead of its program: collects its garbage when it is asked to and says what is in use. */

const { gc } = /** @type {{ gc?: () => void }} */ (globalThis);
if (gc === undefined) throw new Error('run with --expose-gc');

process.on('message', () => {
  // What a first collection finalizes is freed by a second one.
  gc();
  gc();
  process.send?.(process.memoryUsage());
});
// The node ends as it would without a reader of its memory.
process.channel?.unref();
