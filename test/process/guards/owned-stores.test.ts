/** Stores that one process owns: the guard stands in that process, and others reach it over HTTP. */
import { describe, it } from 'vitest';
import { SQLITE } from '../../servers/sqlite.js';
import { describeStaleHolder, startStore } from './frame.js';

describeStaleHolder('LevelDB', startStore('LevelDB'));
describeStaleHolder('in-process', startStore('in-process'));

const [driver] = SQLITE;
if (driver?.open !== undefined) describeStaleHolder('SQLite', startStore('SQLite'));
else {
  describe('SQLite', () => {
    it.skip(`a worker that was stopped past its TTL: ${driver?.name ?? ''}`);
  });
}
