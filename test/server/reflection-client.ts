/** A reflection client by hand: one stream, one answer for each question, in order. */
import type { Client } from '@grpc/grpc-js';
import protobuf from 'protobufjs';

const { root } = protobuf.parse(`
  syntax = "proto3";
  message Question {
    string host = 1;
    oneof kind {
      string file_by_filename = 3;
      string file_containing_symbol = 4;
      Extension file_containing_extension = 5;
      string all_extension_numbers_of_type = 6;
      string list_services = 7;
    }
  }
  message Extension { string containing_type = 1; int32 extension_number = 2; }
  message Reply {
    string valid_host = 1;
    Question original_request = 2;
    oneof kind {
      Files file_descriptor_response = 4;
      Numbers all_extension_numbers_response = 5;
      Services list_services_response = 6;
      Fault error_response = 7;
    }
  }
  message Files { repeated bytes file_descriptor_proto = 1; }
  message Numbers { string base_type_name = 1; repeated int32 extension_number = 2; }
  message Services { repeated Service service = 1; }
  message Service { string name = 1; }
  message Fault { int32 error_code = 1; string error_message = 2; }
`);
const QUESTION = root.lookupType('Question');
const REPLY = root.lookupType('Reply');

export interface Question {
  readonly host?: string;
  readonly fileByFilename?: string;
  readonly fileContainingSymbol?: string;
  readonly fileContainingExtension?: { readonly containingType: string; readonly extensionNumber: number };
  readonly allExtensionNumbersOfType?: string;
  readonly listServices?: string;
}

export interface Reply {
  readonly originalRequest?: Question;
  readonly fileDescriptorResponse?: { readonly fileDescriptorProto: readonly Uint8Array[] };
  readonly listServicesResponse?: { readonly service: readonly { readonly name: string }[] };
  readonly errorResponse?: { readonly errorCode: number; readonly errorMessage: string };
}

export interface Reflection {
  readonly ask: (question: Question | Buffer) => Promise<Reply>;
  /** Half-closes, and resolves with the status code of the stream. */
  readonly end: () => Promise<number>;
}

export function openReflection(client: Client, version: 'v1' | 'v1alpha'): Reflection {
  const path = `/grpc.reflection.${version}.ServerReflection/ServerReflectionInfo`;
  const same = (bytes: Buffer): Buffer => bytes;
  const stream = client.makeBidiStreamRequest(path, same, same);
  const waiting: { readonly done: (reply: Reply) => void; readonly failed: (error: Error) => void }[] = [];
  let over: Error | undefined;
  const finish = (error: Error): void => {
    over ??= error;
    for (const { failed } of waiting.splice(0)) failed(over);
  };
  stream.on('error', finish);
  const status = new Promise<number>((resolve) => {
    stream.on('status', ({ code }: { readonly code: number }) => {
      resolve(code);
      finish(new Error(`the stream ended with status ${code}`));
    });
  });
  const listen = (): void => {
    if (stream.listenerCount('data') > 0) return;
    stream.on('data', (bytes: Buffer) => {
      waiting.shift()?.done(REPLY.toObject(REPLY.decode(bytes)));
    });
  };
  const bytesOf = (question: Question): Buffer => Buffer.from(QUESTION.encode(QUESTION.create(question)).finish());
  return {
    ask: (question) =>
      new Promise((done, failed) => {
        if (over !== undefined) {
          failed(over);
          return;
        }
        listen();
        waiting.push({ done, failed });
        stream.write(Buffer.isBuffer(question) ? question : bytesOf(question));
      }),
    end: () => {
      listen();
      stream.end();
      return status;
    },
  };
}
