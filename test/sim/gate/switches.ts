/** All switches of the detection gate. */
import { BLIND } from './blind.js';
import { CLIENT_SWITCHES } from './client.js';
import { FORMING_SWITCHES } from './forming.js';
import { LEASE_SWITCHES } from './lease.js';
import { LIMITS_SWITCHES } from './limits.js';
import { RAFT_SWITCHES } from './raft.js';
import { STORAGE_SWITCHES } from './storage.js';
import type { Switch } from './switch.js';
import { WAITING_SWITCHES } from './waiting.js';
import { WATCHING_SWITCHES } from './watching.js';

/** See the head of the file. */
export const SWITCHES: readonly Switch[] = [
  ...RAFT_SWITCHES,
  ...LEASE_SWITCHES,
  ...WAITING_SWITCHES,
  ...LIMITS_SWITCHES,
  ...WATCHING_SWITCHES,
  ...CLIENT_SWITCHES,
  ...STORAGE_SWITCHES,
  ...FORMING_SWITCHES,
].map((each) => {
  const blind = BLIND[each.name];
  return blind === undefined ? each : { ...each, blind };
});
