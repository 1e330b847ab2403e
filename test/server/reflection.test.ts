/** Reflection, by a client that knows its messages and nothing of ours. */
import { createHash } from 'node:crypto';
import { Duplex } from 'node:stream';
import type { Server } from '@grpc/grpc-js';
import { afterEach, describe, expect, it } from 'vitest';
import protobuf from 'protobufjs';
import descriptor from 'protobufjs/ext/descriptor/index.js';
import { addReflection } from '../../src/server/reflection.js';
import { ANSWERING, clientOf, endAll, serve, until } from './kit.js';
import { openReflection } from './reflection-client.js';
import type { Reflection, Reply } from './reflection-client.js';

afterEach(endAll);

const LEASE_FILE = 'fencepost/v1/lease.proto';
const CLUSTER_FILE = 'fencepost/v1/cluster.proto';

interface Named {
  readonly name: string;
}
interface Field extends Named {
  readonly typeName?: string;
}
interface File extends Named {
  readonly package: string;
  readonly syntax: string;
  readonly messageType: readonly (Named & { readonly field: readonly Field[] })[];
  readonly service: readonly (Named & {
    readonly method: readonly { readonly name: string; readonly inputType: string; readonly outputType: string }[];
  })[];
}

async function open(version: 'v1' | 'v1alpha'): Promise<Reflection> {
  const { address } = await serve(ANSWERING);
  return openReflection(clientOf(address), version);
}

function filesOf(reply: Reply): File[] {
  const files = reply.fileDescriptorResponse?.fileDescriptorProto ?? [];
  return files.map((bytes) => descriptor.FileDescriptorProto.decode(bytes) as unknown as File);
}

describe.each(['v1', 'v1alpha'] as const)('reflection %s', (version) => {
  it('lists the public services', async () => {
    const reflection = await open(version);
    const { listServicesResponse, originalRequest } = await reflection.ask({ host: 'h', listServices: '*' });
    expect(listServicesResponse?.service.map(({ name }) => name).toSorted()).toEqual([
      'fencepost.v1.ClusterService',
      'fencepost.v1.LeaseService',
    ]);
    expect(originalRequest).toEqual({ host: 'h', listServices: '*' });
    expect(await reflection.end()).toBe(0);
  });

  it.each([LEASE_FILE, CLUSTER_FILE])('gives %s by its name, with full type names', async (name) => {
    const [file, ...others] = filesOf(await (await open(version)).ask({ fileByFilename: name }));
    expect(others).toEqual([]);
    expect(file).toMatchObject({ name, package: 'fencepost.v1', syntax: 'proto3' });
    const types = file?.messageType.flatMap(({ field }) =>
      field.flatMap(({ typeName }) => (typeName === undefined || typeName === '' ? [] : [typeName])),
    );
    const methods = file?.service.flatMap(({ method }) =>
      method.flatMap(({ inputType, outputType }) => [inputType, outputType]),
    );
    expect(types?.length).toBeGreaterThan(0);
    expect(methods?.length).toBeGreaterThan(0);
    for (const each of [...(types ?? []), ...(methods ?? [])]) expect(each).toMatch(/^\.fencepost\.v1\./);
  });

  it.each([
    ['a message', 'fencepost.v1.AcquireRequest', LEASE_FILE],
    ['a nested message', 'fencepost.v1.AcquireRequest.MetadataEntry', LEASE_FILE],
    ['an enumeration', 'fencepost.v1.EndReason', LEASE_FILE],
    ['a service', 'fencepost.v1.LeaseService', LEASE_FILE],
    ['a method', 'fencepost.v1.LeaseService.Acquire', LEASE_FILE],
    ['a message of the other file', 'fencepost.v1.Member', CLUSTER_FILE],
    ['a method of the other file', 'fencepost.v1.ClusterService.GetStatus', CLUSTER_FILE],
  ])('gives the file of %s', async (_, symbol, file) => {
    expect(filesOf(await (await open(version)).ask({ fileContainingSymbol: symbol })).map(({ name }) => name)).toEqual([
      file,
    ]);
  });

  it('answers every question of one stream in order, also after one that it cannot answer', async () => {
    const reflection = await open(version);
    const replies = await Promise.all([
      reflection.ask({ fileContainingSymbol: 'fencepost.v1.Nothing' }),
      reflection.ask({ fileContainingSymbol: '' }),
      reflection.ask({ fileByFilename: 'fencepost/internal/v1/peer.proto' }),
      reflection.ask({ fileContainingExtension: { containingType: 'fencepost.v1.Lease', extensionNumber: 100 } }),
      reflection.ask({ allExtensionNumbersOfType: 'fencepost.v1.Lease' }),
      reflection.ask({}),
      reflection.ask(Buffer.of(0xff, 0xff)),
      reflection.ask({ fileContainingSymbol: 'constructor' }),
      reflection.ask({ listServices: '' }),
    ]);
    expect(replies.map(({ errorResponse }) => errorResponse?.errorCode)).toEqual([
      5,
      5,
      5,
      12,
      12,
      12,
      3,
      5,
      undefined,
    ]);
    expect(replies[0].errorResponse?.errorMessage).toBe('symbol fencepost.v1.Nothing is not served here');
    expect(replies[8].listServicesResponse?.service).toHaveLength(2);
    expect(await reflection.end()).toBe(0);
  });
});

describe('what reflection gives', () => {
  it('is enough to make a call: its own bytes, unchanged by a decoder', async () => {
    const reflection = await open('v1');
    const byName = await reflection.ask({ fileByFilename: LEASE_FILE });
    const bySymbol = await reflection.ask({ fileContainingSymbol: 'fencepost.v1.LeaseService' });
    const digest = (reply: Reply): string[] =>
      (reply.fileDescriptorResponse?.fileDescriptorProto ?? []).map((bytes) =>
        createHash('sha256').update(bytes).digest('hex'),
      );
    expect(digest(byName)).toEqual(digest(bySymbol));
    const root = (protobuf.Root as unknown as { fromDescriptor: (set: object) => protobuf.Root }).fromDescriptor({
      file: filesOf(byName),
    });
    expect(root.lookupService('fencepost.v1.LeaseService').methodsArray.map(({ name }) => name)).toContain('Acquire');
  });

  it('to a client that does not read stays small: it is not read either, until it does', async () => {
    const handlers: ((stream: Duplex) => void)[] = [];
    const server = {
      addService: (_: object, { ServerReflectionInfo }: { ServerReflectionInfo: (stream: Duplex) => void }) =>
        handlers.push(ServerReflectionInfo),
    };
    addReflection(server as unknown as Server);
    const written: Buffer[] = [];
    const blocked: (() => void)[] = [];
    const stream = new Duplex({
      objectMode: true,
      highWaterMark: 4,
      read: () => undefined,
      write: (bytes: Buffer, _, done) => {
        written.push(bytes);
        blocked.push(done);
      },
    });
    handlers[0]?.(stream);
    const QUESTIONS = 100;
    // list_services = 7, ""
    for (let at = 0; at < QUESTIONS; at++) stream.push(Buffer.of(0x3a, 0));
    await until('the stream is full', () => stream.writableNeedDrain);
    for (let turn = 0; turn < 5; turn++) await new Promise((resolve) => setImmediate(resolve));
    expect(written.length + stream.writableLength).toBeLessThan(10);
    while (written.length < QUESTIONS) {
      blocked.shift()?.();
      await new Promise((resolve) => setImmediate(resolve));
    }
    expect(written).toHaveLength(QUESTIONS);
  });
});
