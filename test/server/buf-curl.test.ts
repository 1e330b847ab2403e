/** A stock tool that is strict about descriptors, against the running server. */
import { readFile, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import protobuf from 'protobufjs';
import { afterEach, describe, expect, it } from 'vitest';
import { ERRORS, failure } from '../../src/base/errors.js';
import { DESCRIPTOR_SET } from '../../src/server/reflection.js';
import { ANSWERING, endAll, HEADER, LEASE, serve, TOKEN } from './kit.js';
import { buf, curl, curlCall } from './stock-client.js';

afterEach(endAll);

const { root: DETAILS } = protobuf.parse(`
  syntax = "proto3";
  package google.rpc;
  message ErrorInfo { string reason = 1; string domain = 2; map<string, string> metadata = 3; }
  message RetryInfo { Duration retry_delay = 1; }
  message Duration { int64 seconds = 1; int32 nanos = 2; }
`);

describe('buf curl', () => {
  it('lists the services and their methods', async () => {
    const { address } = await serve(ANSWERING);
    expect((await curl(address, '', '--list-services')).stdout.trim().split('\n').toSorted()).toEqual([
      'fencepost.v1.ClusterService',
      'fencepost.v1.LeaseService',
    ]);
    const methods = (await curl(address, '', '--list-methods')).stdout.trim().split('\n');
    expect(methods).toContain('fencepost.v1.LeaseService/Acquire');
    expect(methods).toContain('fencepost.v1.ClusterService/GetStatus');
  });

  it('calls with what it learnt; 64-bit integers are text', async () => {
    const { address, events } = await serve(ANSWERING);
    expect(await curlCall(address, 'fencepost.v1.LeaseService/Get', { domain: 'd' })).toEqual({
      header: {
        cluster: 'test',
        incarnation: HEADER.incarnation,
        revision: String(HEADER.revision),
        nodeId: 'n1',
        leaderId: 'n2',
      },
      domain: {
        name: 'orders/eu',
        lease: {
          domain: 'orders/eu',
          token: String(TOKEN),
          holder: LEASE.holder,
          // Made by a parser: a literal would set the prototype.
          metadata: JSON.parse('{"__proto__":"kept","zone":"eu"}') as unknown,
          ttlMs: 15_000,
          grantedAtUnixMs: '1796083200000',
        },
        leftMs: 8_999,
      },
    });
    expect(events[0]).toMatchObject({ call: { type: 'get', domain: 'd', freshness: 'linearizable' } });
  });

  it('reads the details of an error', async () => {
    const { address } = await serve(({ id }, calls) => {
      calls.answer(id, HEADER, { type: 'failure', failure: failure('NO_LEADER', 'nobody leads') });
    });
    const { code, stderr } = await curl(address, 'fencepost.v1.LeaseService/Get', '-d', '{"domain":"d"}');
    expect(code).not.toBe(0);
    const said = JSON.parse(stderr) as {
      readonly code: string;
      readonly message: string;
      readonly details: readonly { readonly type: string; readonly value: string }[];
    };
    expect(said).toMatchObject({ code: 'unavailable', message: 'nobody leads' });
    const read = said.details.map(({ type, value }) => {
      const known = DETAILS.lookupType(type);
      return known.toObject(known.decode(Buffer.from(value, 'base64')), { longs: Number });
    });
    expect(read).toEqual([
      { reason: 'NO_LEADER', domain: 'fencepost', metadata: { outcome: 'not-done', remedy: ERRORS.NO_LEADER.remedy } },
      { retryDelay: { seconds: 0, nanos: 200_000_000 } },
    ]);
  });

  it('is told what is not there', async () => {
    const { address } = await serve(ANSWERING);
    const { code, stderr } = await curl(address, 'fencepost.v1.ClusterService/AddMember', '-d', '{}');
    expect(code).not.toBe(0);
    expect(stderr).toContain('contains no such method');
  });
});

describe('the descriptor set', () => {
  it('is what buf makes of the files now; `npm run fix:descriptor` rewrites it', async () => {
    const home = await mkdtemp(join(tmpdir(), 'fencepost-descriptor-'));
    try {
      const made = join(home, 'made.binpb');
      const { code, stderr } = await buf('build', '--path', 'proto/fencepost/v1', '--exclude-source-info', '-o', made);
      expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
      expect((await readFile(made)).equals(await readFile(DESCRIPTOR_SET))).toBe(true);
    } finally {
      await rm(home, { recursive: true, force: true });
    }
  });
});
