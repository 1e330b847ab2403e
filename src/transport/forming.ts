/** The asking side of forming: one call, on a connection of its own that is closed afterwards. */
import * as grpc from '@grpc/grpc-js';
import type { NodeId } from '../base/ids.js';
import type { FormRequest, FormResponse, MemberAddress } from '../replica/types.js';
import { decodeFormResponse, encodeFormRequest } from '../wire/hello.js';
import { asBuffer, identity, messageOf, PATHS } from './channel.js';
import { Connection } from './connection.js';

/** Why a question while forming got no answer. `refused`: the node was reached and said no; the message has its reason. */
export class AskFailed extends Error {
  override readonly name = 'AskFailed';
  readonly node: NodeId;
  readonly kind: 'unreachable' | 'timedOut' | 'refused' | 'closed';

  constructor(peer: MemberAddress, kind: AskFailed['kind'], detail: string) {
    super(`node ${peer.node} at ${peer.peerAddress}: ${detail}`);
    this.node = peer.node;
    this.kind = kind;
  }
}

/** A question under way. */
export interface Ask {
  /** Rejects with {@link AskFailed} only. */
  readonly answer: Promise<FormResponse>;
  /** Ends it: rejects as `closed`. */
  cancel(): void;
}

/** Asks `peer`; gives up after `timeoutMs`, the connect included. */
export function ask(peer: MemberAddress, request: FormRequest, timeoutMs: number): Ask {
  const connection = new Connection(peer.peerAddress);
  let cancel: () => void = () => undefined;
  const answer = new Promise<FormResponse>((resolve, reject) => {
    const options = { deadline: Date.now() + timeoutMs };
    const call = connection.client.makeUnaryRequest<Buffer, Buffer>(
      PATHS.form,
      identity,
      identity,
      asBuffer(encodeFormRequest(request)),
      options,
      (error, bytes) => {
        connection.close();
        if (error !== null) reject(failureOf(peer, error, timeoutMs));
        else {
          try {
            resolve(decodeFormResponse(bytes ?? Buffer.alloc(0)));
          } catch (corrupt) {
            reject(new AskFailed(peer, 'refused', `its answer cannot be read: ${messageOf(corrupt)}`));
          }
        }
      },
    );
    cancel = () => {
      call.cancel();
    };
  });
  return {
    answer,
    cancel: () => {
      cancel();
    },
  };
}

function failureOf(peer: MemberAddress, error: grpc.ServiceError, timeoutMs: number): AskFailed {
  const { code, details } = error;
  if (code === grpc.status.UNAVAILABLE) return new AskFailed(peer, 'unreachable', `unreachable: ${details}`);
  if (code === grpc.status.DEADLINE_EXCEEDED)
    return new AskFailed(peer, 'timedOut', `no answer within ${timeoutMs} ms`);
  if (code === grpc.status.CANCELLED) return new AskFailed(peer, 'closed', 'the question was given up');
  return new AskFailed(peer, 'refused', `refused: ${details}`);
}
