/**
 * `fencepost/testing`: a server in process and in memory, for tests.
 *
 * @packageDocumentation
 */
export { startTestServer } from './server.js';
export type { TestServer } from './server.js';
export type { Lease, LeaseInfo } from '../client/index.js';
