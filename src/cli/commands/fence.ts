import { MAX_NOTE_BYTES } from '../../base/limits.js';
import type { CommandSpec } from '../command.js';
import { CLUSTER_OPTIONS, readEndpoints } from '../endpoints.js';
import { examine } from '../fence/doctor.js';
import { migrate, printMigration } from '../fence/migrate.js';
import { reset } from '../fence/reset.js';
import { ADDRESS_FORMS, readResource, withResource } from '../fence/resources.js';
import { show } from '../fence/show.js';
import type { ResetRequest } from '../fence/store.js';
import type { Input } from '../input.js';

const ACTIONS = ['migrate', 'show', 'reset', 'doctor'] as const;
type Action = (typeof ACTIONS)[number];

/** What goes with one of them only. */
const OWN_FLAGS: Readonly<Record<string, Action>> = {
  print: 'migrate',
  note: 'reset',
  incarnation: 'reset',
  endpoints: 'doctor',
};

const MAX_DOMAIN_BYTES = 255;

/** `fencepost fence migrate`, `show [domain]`, `reset <domain> <token>`, `doctor`. */
export const spec: CommandSpec = {
  operands: 'migrate | show [domain] | reset <domain> <token> | doctor',
  options: [
    { flag: 'at', value: 'ADDRESS', about: `where the fences are: ${ADDRESS_FORMS} (required)` },
    { flag: 'print', about: 'with migrate: the SQL on standard output; connects to nothing' },
    {
      flag: 'note',
      value: 'TEXT',
      about: `with reset: why, kept beside the fence (required, 1–${MAX_NOTE_BYTES} bytes)`,
    },
    { flag: 'incarnation', value: 'ID', about: 'with reset: of the lease that has the token (default: what stands)' },
    ...CLUSTER_OPTIONS.map((option) =>
      option.flag === 'endpoints'
        ? { ...option, about: 'with doctor: compare each fence with the revision of this cluster' }
        : option,
    ),
  ],
  notes: `migrate: makes the schema of the fences, or brings it up to date; as often as you like. Redis needs none.
show: the fences, and what mode observe counted. A token is a count of microseconds: its date is when it was granted.
reset: sets a fence that stands, up or down, for the one case that somebody presented a token which no cluster granted.
  The token has to be that of the lease that was granted last; after an older one stale holders pass.
doctor: what lets a stale write pass or keeps a successor out, and the floor for a cluster that is formed anew.

The driver is yours: the package pg, better-sqlite3, mysql2, or ioredis or redis, of the project in the current folder. Keep
passwords out of the command line where you can: pg reads PGPASSWORD and ~/.pgpass.`,
  exitCodes:
    'Exit codes: 0 done, and doctor found nothing; 1 the domain has no fence, or doctor found something; 2 wrong usage;\n3 the resource or the cluster did not answer or refused, or the driver is not there.',
  async run(input, io) {
    const action = readAction(input);
    const resource = readResource(input);
    const domain = action === 'show' ? input.optionalOperand() : undefined;
    const request = action === 'reset' ? readReset(input) : undefined;
    const where = readEndpoints(input, io);
    input.finish('fence');
    const json = input.has('json');
    // `finish` has thrown when it is missing.
    if (resource === undefined) throw new Error('no resource');
    if (action === 'migrate' && input.has('print')) return printMigration(resource.kind, io, json);
    const surroundings = { folder: io.folder, timeoutMs: where.timeoutMs };
    return await withResource(resource, surroundings, async (store) => {
      if (action === 'migrate') return await migrate(store, resource.kind, io, json);
      if (action === 'show') return await show(store, domain, io, json);
      if (request !== undefined) return await reset(store, request, io, json);
      return await examine(store, input.value('endpoints') === undefined ? undefined : where, io, json);
    });
  },
};

function readAction(input: Input): Action | undefined {
  const word = input.operand('what to do');
  const action = ACTIONS.find((each) => each === word);
  if (action === undefined && word !== '')
    input.fault(`fence takes ${ACTIONS.join(', ')}, not ${JSON.stringify(word)}`);
  if (action !== undefined)
    for (const [flag, owner] of Object.entries(OWN_FLAGS))
      if (input.has(flag) && owner !== action) input.fault(`--${flag} goes with ${owner}`);
  return action;
}

function readReset(input: Input): ResetRequest {
  // Not every fence is of Fencepost: what stands there may be any text.
  const domain = input.operand('the domain');
  if (Buffer.byteLength(domain) > MAX_DOMAIN_BYTES)
    input.fault(`the domain must have at most ${MAX_DOMAIN_BYTES} bytes`);
  const token = BigInt(input.token());
  const note = input.text('note') ?? '';
  const bytes = Buffer.byteLength(note);
  if (note.trim() === '' || bytes > MAX_NOTE_BYTES)
    input.fault(`--note must say why, in 1 to ${MAX_NOTE_BYTES} bytes; this one has ${bytes}`);
  return { domain, token, note, incarnation: input.text('incarnation') };
}
