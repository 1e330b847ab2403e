import { MAX_NOTE_BYTES } from '../../base/limits.js';
import type { CommandSpec } from '../command.js';
import { CLUSTER_OPTIONS, readEndpoints, withCluster } from '../endpoints.js';
import { EXIT } from '../io.js';
import { print } from '../print.js';

/** `fencepost force-release <domain> <token> --note TEXT`. */
export const spec: CommandSpec = {
  operands: '<domain> <token>',
  options: [
    {
      flag: 'note',
      value: 'TEXT',
      about: `why, for the audit log and the holder (required, 1–${MAX_NOTE_BYTES} bytes)`,
    },
    ...CLUSTER_OPTIONS,
  ],
  notes:
    'The holder may believe in its lease until its own deadline. The token, as `fencepost get` shows it, keeps you from\nending a lease that began after you looked.',
  async run(input, io) {
    const domain = input.domain();
    const token = input.token();
    const note = input.text('note') ?? '';
    const bytes = Buffer.byteLength(note);
    if (bytes === 0 || bytes > MAX_NOTE_BYTES)
      input.fault(`--note must have 1 to ${MAX_NOTE_BYTES} bytes; this one has ${bytes}`);
    const where = readEndpoints(input, io);
    input.finish('force-release');
    return await withCluster(io, where, async (cluster) => {
      const { answer } = await cluster.call({ type: 'forceRelease', domain, token, note });
      const { released, currentToken } = answer;
      const live = currentToken === 0 ? null : String(currentToken);
      print(io, input.has('json'), { released, domain, token: String(token), currentToken: released ? null : live }, [
        ['released', released ? { text: 'yes', tone: 'good' } : { text: 'no, this lease was not live', tone: 'bad' }],
        ['domain', domain],
        ...(released ? [] : [['now live', live === null ? 'none' : `token ${live}`] as const]),
      ]);
      return released ? EXIT.ok : EXIT.no;
    });
  },
};
