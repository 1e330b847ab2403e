import { describe, expect, it } from 'vitest';
import { isLoopback, parseAddress } from '../../src/base/address.js';

describe('parseAddress', () => {
  it.each([
    ['127.0.0.1:7101', { host: '127.0.0.1', port: 7101 }],
    ['node-1.fencepost.svc:1', { host: 'node-1.fencepost.svc', port: 1 }],
    ['[::1]:65535', { host: '::1', port: 65_535 }],
  ])('reads %s', (text, address) => {
    expect(parseAddress(text)).toEqual(address);
  });

  it.each([
    '',
    'host',
    ':7101',
    'host:',
    'host:0',
    'host:65536',
    '::1:7101',
    'a b:1',
    '[host]:1',
    'host:1x',
    'http://h:1',
  ])('refuses %j', (text) => {
    expect(parseAddress(text)).toBeUndefined();
  });
});

describe('isLoopback', () => {
  it.each([
    ['127.0.0.1', true],
    ['127.8.9.1', true],
    ['::1', true],
    ['localhost', true],
    ['0.0.0.0', false],
    ['::', false],
    ['10.0.0.1', false],
    ['127.example.com', false],
  ])('%s: %s', (host, expected) => {
    expect(isLoopback({ host, port: 1 })).toBe(expected);
  });
});
