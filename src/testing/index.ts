/** `fencepost/testing`: a server in process and in memory, for tests. */
export { startTestServer } from './server.js';
export type { TestServer } from './server.js';
export type { Lease } from '../client/index.js';
