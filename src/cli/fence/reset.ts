import { EXIT, type Io } from '../io.js';
import { print } from '../print.js';
import { toned } from '../table.js';
import { noFence } from './show.js';
import type { FenceStore, ResetRequest } from './store.js';
import { fenceJson, tokenText } from './views.js';

/** `fence reset <domain> <token> --note TEXT`. */
export async function reset(store: FenceStore, request: ResetRequest, io: Io, json: boolean): Promise<number> {
  const { domain, token, note } = request;
  const before = await store.reset(request);
  if (before === undefined) {
    if (json) io.out(JSON.stringify({ reset: false, domain, before: null, after: null }));
    else io.err(`fence reset: ${noFence(domain)}`);
    return EXIT.no;
  }
  // When the one before was raised says nothing of this one.
  const after = { ...before, token, incarnation: request.incarnation ?? before.incarnation, raisedAt: undefined };
  print(io, json, { reset: true, domain, before: fenceJson(before), after: fenceJson(after), note }, [
    ['reset', { text: 'yes', tone: 'good' }],
    ['domain', domain],
    ['before', tokenText(before.token)],
    ['now', tokenText(token)],
    ['issuer', before.issuer ?? '-'],
    ['incarnation', after.incarnation ?? '-'],
    ['note', note],
  ]);
  if (!json && token < before.token)
    io.err(toned(`whoever holds a token from ${token} to ${before.token} can write again`, 'bad', io.colour));
  return EXIT.ok;
}
