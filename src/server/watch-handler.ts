/**
 * One watch: checked, handed to the replica, fed as fast as its client reads. One message is under way at a time: gRPC says
 * that it has left when HTTP/2's flow control let it go, so a client that does not read holds one message here and no more.
 */
import type { ServerWritableStream } from '@grpc/grpc-js';
import { failure } from '../base/errors.js';
import type { Failure } from '../base/errors.js';
import { parseWatch } from '../wire/public-watch.js';
import type { UnreadWatch, WatchMessage } from '../wire/public-watch.js';
import type { HandlerContext } from './handler.js';
import { notFormed } from './handler.js';
import { principalOf } from './principal.js';
import { endOf } from './status.js';

type Stream = ServerWritableStream<UnreadWatch, WatchMessage>;

/** The handler of `Watch`. It never throws: an unexpected error ends the stream as INTERNAL, and is told to `report`. */
export function createWatchHandler(
  context: HandlerContext,
  report: (error: unknown) => void,
): (stream: Stream) => void {
  return (stream) => {
    const end = (fault: Failure | undefined): void => {
      // grpc-js sends what was written before, then this status.
      if (fault === undefined) stream.end();
      else stream.emit('error', endOf(fault));
    };
    const parsed = parseWatch(stream.request);
    if ('faults' in parsed) {
      end(failure('INVALID_REQUEST', parsed.faults.join('; ')));
      return;
    }
    if (!context.watches.attached) {
      end(notFormed(context));
      return;
    }
    try {
      const id = context.watches.open(principalOf(stream.getPeer()), parsed.ok, {
        send: (message, sent) => {
          stream.write(message, (error?: Error | null) => {
            if (error === undefined || error === null) sent();
          });
        },
        end,
      });
      // Emitted once in every case: behind the last trailer, or when the client or the connection has gone.
      stream.once('cancelled', () => {
        context.watches.close(id);
      });
    } catch (error) {
      report(error);
      end(failure('INTERNAL', 'an unexpected error; the log of this node has it'));
    }
  };
}
