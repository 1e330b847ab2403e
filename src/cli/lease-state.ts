import type { LeaseRef, LeaseState } from '../base/api.js';
import { EXIT, type Io } from './io.js';
import { print } from './print.js';
import { endedJson, endedRows } from './views.js';

/** Prints what became of one lease under the name of what was asked (`renewed`, `live`), and returns the exit code. */
export function showLeaseState(io: Io, json: boolean, asked: string, lease: LeaseRef, state: LeaseState): number {
  switch (state.type) {
    case 'live':
      print(io, json, { [asked]: true, domain: lease.domain, token: String(lease.token), ttlMs: state.ttlMs }, [
        [asked, { text: 'yes', tone: 'good' }],
        ['domain', lease.domain],
        ['token', String(lease.token)],
        ['ttl', `${state.ttlMs} ms`],
      ]);
      return EXIT.ok;
    case 'ended':
      print(
        io,
        json,
        { [asked]: false, domain: lease.domain, token: String(lease.token), ended: endedJson(state.ended) },
        [[asked, { text: 'no', tone: 'bad' }], ...endedRows(state.ended)],
      );
      return EXIT.no;
  }
}
