/** What members say of themselves ↔ `peer.proto`: Hello, FormRequest, FormResponse. */
import type { FormRequest, FormResponse, Hello } from '../replica/types.js';
import { genesisFields, readGenesis } from './genesis.js';
import {
  bootId,
  directoryId,
  flag,
  has,
  incarnation,
  integer,
  name,
  nodeId,
  part,
  positive,
  text,
  wellFormed,
} from './fields.js';
import { uint32, uint64 } from './numbers.js';
import { decodeFields, encodeFields, messageType } from './proto.js';
import type { Fields } from './proto.js';

const HELLO = messageType('Hello');
const FORM_REQUEST = messageType('FormRequest');
const FORM_RESPONSE = messageType('FormResponse');

/** The bytes of a Hello alone; streams carry it in their first frame, see `peer-frames.ts`. */
export function encodeHello(hello: Hello): Uint8Array {
  return encodeFields(HELLO, helloFields(hello));
}

/** Throws `CorruptBytes`. */
export function decodeHello(bytes: Uint8Array): Hello {
  return readHello(decodeFields(HELLO, bytes, 'hello'));
}

/** A question or an offer. */
export function encodeFormRequest(request: FormRequest): Uint8Array {
  return encodeFields(FORM_REQUEST, requestFields(request));
}

/** Throws `CorruptBytes`. */
export function decodeFormRequest(bytes: Uint8Array): FormRequest {
  return readRequest(decodeFields(FORM_REQUEST, bytes, 'form request'), 'form request');
}

/** What the asked one is and has. */
export function encodeFormResponse(response: FormResponse): Uint8Array {
  return encodeFields(FORM_RESPONSE, { ...requestFields(response), forming: response.forming });
}

/** Throws `CorruptBytes`. */
export function decodeFormResponse(bytes: Uint8Array): FormResponse {
  const what = 'form response';
  const fields = decodeFields(FORM_RESPONSE, bytes, what);
  return { ...readRequest(fields, what), forming: flag(fields, 'forming', what) };
}

/** As a part of a frame. */
export function helloFields(hello: Hello): Fields {
  return {
    cluster: wellFormed(hello.cluster, 'cluster'),
    incarnation: hello.incarnation,
    nodeId: hello.node,
    directoryId: hello.directory,
    bootId: hello.boot,
    format: uint32(hello.format, 'format'),
  };
}

/** From a part of a frame. A greater format than ours is no fault here: the older side decides what is spoken. */
export function readHello(fields: Fields): Hello {
  const what = 'hello';
  return {
    cluster: name(fields, 'cluster', what),
    incarnation: text(fields, 'incarnation', what) === '' ? '' : incarnation(fields, 'incarnation', what),
    node: nodeId(fields, 'nodeId', what),
    directory: directoryId(fields, 'directoryId', what),
    boot: bootId(fields, 'bootId', what),
    format: positive(fields, 'format', what),
  };
}

function requestFields(request: FormRequest): Fields {
  return {
    hello: helloFields(request.hello),
    initialMembersDigest: wellFormed(request.initialMembersDigest, 'initialMembersDigest'),
    unixUs: uint64(request.unixUs, 'unixUs'),
    stateDigest: wellFormed(request.stateDigest, 'stateDigest'),
    genesis: request.genesis === undefined ? undefined : genesisFields(request.genesis),
  };
}

function readRequest(fields: Fields, what: string): FormRequest {
  return {
    hello: readHello(part(fields, 'hello', what)),
    initialMembersDigest: text(fields, 'initialMembersDigest', what),
    unixUs: integer(fields, 'unixUs', what),
    stateDigest: text(fields, 'stateDigest', what),
    genesis: has(fields, 'genesis') ? readGenesis(part(fields, 'genesis', what)) : undefined,
  };
}
