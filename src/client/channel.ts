/** The way to one endpoint: one call at a time in each `send`, no retry, no choice. `grpc-channel.ts` is the real one. */
import type { Answer, Call, Header } from '../base/api.js';
import type { Failure } from '../base/errors.js';

/** How one attempt ended. */
export type Reply =
  | {
      readonly type: 'answer';
      readonly header: Header | undefined;
      readonly answer: Answer;
      /** The node's version; empty but in a status. */
      readonly version: string;
    }
  /** The node says why it did not do it. */
  | { readonly type: 'failure'; readonly failure: Failure; readonly retryDelayMs: number }
  /**
   * No word from the node: no connection, a broken one, or silence until the time was over. `reached` is false only
   * when the call surely never left; else its outcome is unknown. `why` is for people, and names no endpoint.
   */
  | { readonly type: 'silent'; readonly reached: boolean; readonly why: string }
  /** Something answered, and it was not what a Fencepost node says. */
  | { readonly type: 'foreign'; readonly why: string };

/** A connection to one endpoint, made when it is needed and again when it broke. */
export interface Channel {
  /**
   * Sends `call` and calls `done` exactly once, at the latest `timeoutMs` later, never before it returns. The returned
   * function gives up at once; `done` is then not called. It returns `reached`, as a silent reply has it.
   */
  send(call: Call, timeoutMs: number, done: (reply: Reply) => void): () => boolean;
  close(): void;
}

/** Makes the channel for an endpoint, `host:port`. */
export type OpenChannel = (endpoint: string) => Channel;
