/** The receiving end of a control or append stream: core messages, each checked to come from whom the hello named. */
import type { NodeId } from '../base/ids.js';
import type { Event, Hello } from '../replica/types.js';
import { decodeMessage } from '../wire/message.js';
import { decodeFrame } from '../wire/peer-frames.js';
import type { StreamHandler } from './incoming.js';

/** A handler that reports `message` events, and `streamEnded` when no newer stream of the same process took its place. */
export function messageStream(self: NodeId, hello: Hello, emit: (event: Event) => void): StreamHandler {
  return {
    frame(bytes) {
      for (const part of decodeFrame(bytes, 'message frame').parts) {
        const message = decodeMessage(part);
        const { from, to } = message;
        if (from.node !== hello.node || from.directory !== hello.directory) {
          throw new Error(
            `a message names ${from.node}/${from.directory} as its sender, the hello of this stream named ${hello.node}/${hello.directory}`,
          );
        }
        if (to.node !== self) throw new Error(`a message for node ${to.node} came to node ${self}`);
        // Without its chunks it would be an order to install what is not there.
        if (message.type === 'installSnapshot') throw new Error('a snapshot comes over its own connection, in chunks');
        emit({ type: 'message', message });
      }
    },
    ended(replaced) {
      if (!replaced) emit({ type: 'streamEnded', node: hello.node });
    },
  };
}
