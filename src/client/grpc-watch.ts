/** The real {@link OpenWatch}: one gRPC connection, and one stream over it. */
import { Client, connectivityState, credentials } from '@grpc/grpc-js';
import type { ServiceError } from '@grpc/grpc-js';
import type { WatchCall } from '../base/watch.js';
import { WATCH_METHOD } from '../wire/public-watch.js';
import { replyFor } from './grpc-channel.js';
import { CHANNEL_OPTIONS, CONNECT_MS } from './grpc-connection.js';
import type { OpenedWatch, WatchEnd, WatchListener } from './watch-channel.js';

/** Connects and watches. */
export function openGrpcWatch(endpoint: string, call: WatchCall, listener: WatchListener): OpenedWatch {
  const client = new Client(endpoint, credentials.createInsecure(), CHANNEL_OPTIONS);
  const { path, requestSerialize, responseDeserialize } = WATCH_METHOD;
  const stream = client.makeServerStreamRequest(path, requestSerialize, asIs, call);
  let open = true;
  const close = (): void => {
    open = false;
    clearTimeout(watchdog);
    stream.cancel();
    client.close();
  };
  const end = (why: WatchEnd): void => {
    if (!open) return;
    close();
    listener.end(why);
  };
  // A peer that accepts and stays silent would keep it connecting for ever (see `grpc-connection.ts`).
  const watchdog = setTimeout(() => {
    if (client.getChannel().getConnectivityState(false) === connectivityState.READY) return;
    end({ type: 'silent', reached: false, why: `no connection within ${CONNECT_MS} ms` });
  }, CONNECT_MS);
  watchdog.unref();
  stream.on('data', (bytes: Buffer) => {
    if (!open) return;
    const message = read(bytes);
    if ('why' in message) end({ type: 'foreign', why: message.why });
    else listener.message(message);
  });
  stream.on('error', (error: ServiceError) => {
    end(replyFor(error, true, 0));
  });
  stream.on('end', () => {
    end({ type: 'ended' });
  });
  return {
    pause: () => {
      stream.pause();
    },
    resume: () => {
      stream.resume();
    },
    close,
  };

  function read(bytes: Buffer): ReturnType<typeof responseDeserialize> | { readonly why: string } {
    try {
      return responseDeserialize(bytes);
    } catch (error) {
      return { why: `a message cannot be read: ${error instanceof Error ? error.message : String(error)}` };
    }
  }
}

function asIs(bytes: Buffer): Buffer {
  return bytes;
}
