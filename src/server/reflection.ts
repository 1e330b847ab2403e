/**
 * gRPC server reflection (v1 and v1alpha, whose messages are the same), answered from the descriptor set that
 * `buf build` made of `proto/fencepost/v1`. Served by ourselves because descriptors that protobufjs writes have
 * relative type names, which strict clients refuse (grpc-node #3018). It shows the public services only.
 */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Server, ServerDuplexStream } from '@grpc/grpc-js';
import protobuf from 'protobufjs';
import descriptor from 'protobufjs/ext/descriptor/index.js';
import { PROTO_DIRECTORY } from '../wire/public-directory.js';

/** The descriptor set, made by `npm run fix:descriptor`; a test compares it with the sources. */
export const DESCRIPTOR_SET = join(PROTO_DIRECTORY, 'fencepost-v1.binpb');

const NOT_FOUND = 5;
const UNIMPLEMENTED = 12;

// The two messages of grpc.reflection.v1, as far as a server without extensions needs them.
const { root } = protobuf.parse(`
  syntax = "proto3";
  message Request {
    string host = 1;
    oneof message_request {
      string file_by_filename = 3;
      string file_containing_symbol = 4;
      Extension file_containing_extension = 5;
      string all_extension_numbers_of_type = 6;
      string list_services = 7;
    }
  }
  message Extension { string containing_type = 1; int32 extension_number = 2; }
  message Response {
    string valid_host = 1;
    Request original_request = 2;
    oneof message_response {
      Files file_descriptor_response = 4;
      Services list_services_response = 6;
      Fault error_response = 7;
    }
  }
  message Files { repeated bytes file_descriptor_proto = 1; }
  message Services { repeated Service service = 1; }
  message Service { string name = 1; }
  message Fault { int32 error_code = 1; string error_message = 2; }
`);
const REQUEST = root.lookupType('Request');
const RESPONSE = root.lookupType('Response');

interface Question {
  /** Which member of the oneof is set. */
  readonly messageRequest?: string;
  readonly fileByFilename?: string;
  readonly fileContainingSymbol?: string;
}

interface Index {
  readonly services: readonly string[];
  /** File name → the bytes of its descriptor and of all that it imports. */
  readonly files: ReadonlyMap<string, readonly Uint8Array[]>;
  /** Full name of a message, enum, service or method → its file's name. */
  readonly symbols: ReadonlyMap<string, string>;
}

/** Registers both versions of the reflection service. */
export function addReflection(server: Server): void {
  const index = readIndex(readFileSync(DESCRIPTOR_SET));
  for (const version of ['v1', 'v1alpha']) {
    server.addService(
      {
        ServerReflectionInfo: {
          path: `/grpc.reflection.${version}.ServerReflection/ServerReflectionInfo`,
          requestStream: true,
          responseStream: true,
          requestSerialize: (bytes: Buffer) => bytes,
          requestDeserialize: (bytes: Buffer) => bytes,
          responseSerialize: (bytes: Buffer) => bytes,
          responseDeserialize: (bytes: Buffer) => bytes,
        },
      },
      {
        ServerReflectionInfo: (stream: ServerDuplexStream<Buffer, Buffer>) => {
          // A client that goes away shows up as an error here.
          stream.on('error', () => undefined);
          stream.on('data', (bytes: Buffer) => {
            // An answer is a thousand times its question: a client that does not read is not read either.
            if (!stream.write(answer(index, bytes))) stream.pause();
          });
          stream.on('drain', () => {
            stream.resume();
          });
          stream.on('end', () => {
            stream.end();
          });
        },
      },
    );
  }
}

function answer(index: Index, bytes: Buffer): Buffer {
  let question: Question;
  try {
    question = REQUEST.decode(bytes) as unknown as Question;
  } catch {
    return Buffer.from(
      RESPONSE.encode({
        errorResponse: { errorCode: 3, errorMessage: 'the bytes are no reflection request' },
      }).finish(),
    );
  }
  return Buffer.from(RESPONSE.encode({ originalRequest: question, ...responseTo(index, question) }).finish());
}

function responseTo(index: Index, question: Question): object {
  const { messageRequest: kind, fileByFilename: file = '', fileContainingSymbol: symbol = '' } = question;
  if (kind === 'listServices') return { listServicesResponse: { service: index.services.map((name) => ({ name })) } };
  if (kind === 'fileByFilename') return filesOrFault(index, file, `file ${file}`);
  if (kind === 'fileContainingSymbol') return filesOrFault(index, index.symbols.get(symbol), `symbol ${symbol}`);
  return { errorResponse: { errorCode: UNIMPLEMENTED, errorMessage: 'there are no extensions here' } };
}

function filesOrFault(index: Index, file: string | undefined, what: string): object {
  const found = file === undefined ? undefined : index.files.get(file);
  if (found === undefined)
    return { errorResponse: { errorCode: NOT_FOUND, errorMessage: `${what} is not served here` } };
  return { fileDescriptorResponse: { fileDescriptorProto: found } };
}

interface MessageDescriptor {
  readonly name: string;
  readonly nestedType: readonly MessageDescriptor[];
  readonly enumType: readonly { readonly name: string }[];
}
interface FileDescriptor extends Omit<MessageDescriptor, 'nestedType'> {
  readonly package: string;
  readonly dependency: readonly string[];
  readonly messageType: readonly MessageDescriptor[];
  readonly service: readonly { readonly name: string; readonly method: readonly { readonly name: string }[] }[];
}

function readIndex(set: Uint8Array): Index {
  const { file: descriptors } = descriptor.FileDescriptorSet.decode(set) as unknown as {
    readonly file: readonly FileDescriptor[];
  };
  const raw = rawFiles(set);
  const bytes = new Map(descriptors.map(({ name }, at) => [name, raw[at]] as const));
  const byName = new Map(descriptors.map((file) => [file.name, file] as const));
  const symbols = new Map<string, string>();
  const services: string[] = [];
  const addMessage = (scope: string, message: MessageDescriptor, file: string): void => {
    const full = `${scope}.${message.name}`;
    symbols.set(full, file);
    for (const each of message.enumType) symbols.set(`${full}.${each.name}`, file);
    for (const nested of message.nestedType) addMessage(full, nested, file);
  };
  for (const file of descriptors) {
    for (const message of file.messageType) addMessage(file.package, message, file.name);
    for (const each of file.enumType) symbols.set(`${file.package}.${each.name}`, file.name);
    for (const service of file.service) {
      const full = `${file.package}.${service.name}`;
      services.push(full);
      symbols.set(full, file.name);
      for (const method of service.method) symbols.set(`${full}.${method.name}`, file.name);
    }
  }
  const closure = (name: string, seen = new Set<string>()): Set<string> => {
    if (seen.has(name)) return seen;
    seen.add(name);
    for (const dependency of byName.get(name)?.dependency ?? []) closure(dependency, seen);
    return seen;
  };
  const files = new Map(
    descriptors.map(({ name }) => [name, [...closure(name)].flatMap((each) => bytes.get(each) ?? [])] as const),
  );
  return { services, files, symbols };
}

/** The descriptors' own bytes, untouched by a decoder that might lose what it does not know. */
function rawFiles(set: Uint8Array): Uint8Array[] {
  const reader = protobuf.Reader.create(set);
  const files: Uint8Array[] = [];
  while (reader.pos < reader.len) {
    const tag = reader.uint32();
    if (tag === ((1 << 3) | 2)) files.push(reader.bytes());
    else reader.skipType(tag & 7);
  }
  return files;
}
