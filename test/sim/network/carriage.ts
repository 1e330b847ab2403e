/** What travels between two processes. With codecs it travels as bytes, and every arrival reads them anew. */
import { assert } from '../../../src/base/assert.js';
import type { Message } from '../../../src/raft/types.js';
import type { FormRequest, FormResponse, Hello, SnapshotChunk } from '../../../src/replica/types.js';
import { decodeChunk, encodeChunk } from '../../../src/wire/chunk.js';
import {
  decodeForwardedCall,
  decodeForwardedResult,
  encodeForwardedCall,
  encodeForwardedResult,
} from '../../../src/wire/forward.js';
import type { ForwardedCall, ForwardedResult } from '../../../src/wire/forward.js';
import {
  decodeFormRequest,
  decodeFormResponse,
  decodeHello,
  encodeFormRequest,
  encodeFormResponse,
  encodeHello,
} from '../../../src/wire/hello.js';
import { decodeMessage, encodeMessage } from '../../../src/wire/message.js';
import {
  decodeDone,
  decodeFrame,
  doneFrame,
  helloFrame,
  numberFrame,
  partFrame,
} from '../../../src/wire/peer-frames.js';

/** Something under way: reads what arrived. */
export type Carried<T> = () => T;

/** Packs each kind of thing; see the head of the file. */
export interface Carriage {
  message(message: Message): Carried<Message>;
  call(call: ForwardedCall): Carried<ForwardedCall>;
  cancel(id: number): Carried<number>;
  result(result: ForwardedResult): Carried<ForwardedResult>;
  chunk(chunk: SnapshotChunk): Carried<SnapshotChunk>;
  done(request: number): Carried<number>;
  hello(hello: Hello): Carried<Hello>;
  formRequest(request: FormRequest): Carried<FormRequest>;
  formResponse(response: FormResponse): Carried<FormResponse>;
}

/** With the codecs of production, or without any. */
export function createCarriage(codecs: boolean): Carriage {
  return codecs ? CODED : PLAIN;
}

const plain =
  <T>(value: T): Carried<T> =>
  () =>
    value;

const PLAIN: Carriage = {
  message: plain,
  call: plain,
  cancel: plain,
  result: plain,
  chunk: plain,
  done: plain,
  hello: plain,
  formRequest: plain,
  formResponse: plain,
};

const CODED: Carriage = {
  message: framed(encodeMessage, decodeMessage),
  call: framed(encodeForwardedCall, decodeForwardedCall),
  cancel: (id) => {
    const frame = numberFrame(id);
    return () => only(decodeFrame(frame, 'forward frame').numbers);
  },
  result: framed(encodeForwardedResult, decodeForwardedResult),
  chunk: framed(encodeChunk, decodeChunk),
  done: (request) => {
    const frame = doneFrame(request);
    return () => only([decodeDone(frame)]);
  },
  hello: (hello) => {
    const frame = helloFrame(encodeHello(hello));
    return () => decodeHello(only([decodeFrame(frame, 'first frame').hello]));
  },
  formRequest: coded(encodeFormRequest, decodeFormRequest),
  formResponse: coded(encodeFormResponse, decodeFormResponse),
};

function coded<T>(encode: (value: T) => Uint8Array, decode: (bytes: Uint8Array) => T): (value: T) => Carried<T> {
  return (value) => {
    const bytes = encode(value);
    return () => decode(bytes);
  };
}

/** As {@link coded}, as the one part of a frame. */
function framed<T>(encode: (value: T) => Uint8Array, decode: (bytes: Uint8Array) => T): (value: T) => Carried<T> {
  return coded(
    (value) => partFrame(encode(value)),
    (frame) => decode(only(decodeFrame(frame, 'frame').parts)),
  );
}

function only<T>(values: readonly (T | undefined)[]): T {
  const [value] = values;
  assert(value !== undefined && values.length === 1, 'a frame carries one part');
  return value;
}
