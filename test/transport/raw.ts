/** A stream opened by hand, to say what no member says. */
import * as grpc from '@grpc/grpc-js';
import type { Hello } from '../../src/replica/types.js';
import { encodeHello } from '../../src/wire/hello.js';
import { helloFrame } from '../../src/wire/peer-frames.js';
import { PATHS } from '../../src/transport/channel.js';

const same = (bytes: Buffer): Buffer => bytes;

export interface RawStream {
  readonly answers: Buffer[];
  /** Set when the stream has ended. */
  readonly status: () => grpc.StatusObject | undefined;
  write(bytes: Uint8Array): void;
  close(): Promise<void>;
}

/** Opens a stream at `address`; says `hello` first unless it is undefined. */
export function openRaw(address: string, path: keyof typeof PATHS, hello: Hello | undefined): RawStream {
  const client = new grpc.Client(address, grpc.credentials.createInsecure(), { 'grpc.use_local_subchannel_pool': 1 });
  const stream = client.makeBidiStreamRequest<Buffer, Buffer>(PATHS[path], same, same);
  const answers: Buffer[] = [];
  let status: grpc.StatusObject | undefined;
  stream.on('data', (bytes: Buffer) => answers.push(bytes));
  stream.on('error', () => undefined);
  stream.on('status', (ended) => {
    status = ended;
  });
  const write = (bytes: Uint8Array): void => {
    stream.write(Buffer.from(bytes));
  };
  if (hello !== undefined) write(helloFrame(encodeHello(hello)));
  return {
    answers,
    status: () => status,
    write,
    close: () => {
      stream.cancel();
      client.close();
      return Promise.resolve();
    },
  };
}
