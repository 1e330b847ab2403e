/** Switches of watches: what a watcher is told, how far that is complete, and when its stream ends. */
import type { Switch } from './switch.js';

/** See the head of the file. */
export const WATCHING_SWITCHES: readonly Switch[] = [
  {
    name: 'watch-resumed-behind-its-start',
    area: 'lease',
    file: 'src/replica/watching.ts',
    text: 'const from = startRevision === ZERO_REVISION ? next(applied) : startRevision;',
    replacement: 'const from = startRevision === ZERO_REVISION ? next(applied) : next(startRevision);',
    rule: 'A watch begins with the revision that was asked for.',
    source: 'design 8, Watch',
  },
  {
    name: 'watch-compacted-in-silence',
    area: 'lease',
    file: 'src/replica/watch-delivery.ts',
    text: 'if (watcher.from < ring.oldest) {',
    replacement: 'if (watcher.from < ring.oldest && watcher.from < 0) {',
    rule: 'What the ring no longer has is never passed over in silence.',
    source: 'design 8, Watch',
  },
  {
    name: 'watch-complete-ahead-of-what-was-sent',
    area: 'lease',
    file: 'src/replica/watch-delivery.ts',
    text: 'const complete = watcher.behind ? ((watcher.from - 1) as Revision) : appliedRevision(context);',
    replacement: 'const complete = appliedRevision(context);',
    rule: 'The header of a message says up to where everything was sent.',
    source: 'design 8, Watch',
  },
  {
    name: 'watch-goes-on-without-a-leader',
    area: 'lease',
    file: 'src/replica/watching.ts',
    text: 'endWatchers(context, noLeader(context));',
    replacement: 'noLeader(context);',
    rule: 'A watch ends when its node has known no leader for an election time-out.',
    source: 'design 8, Watch',
  },
  {
    name: 'watch-told-of-another-prefix',
    area: 'lease',
    file: 'src/replica/watch-delivery.ts',
    text: 'number >= skip && domain.startsWith(prefix)',
    replacement: 'number >= skip && (prefix.length > 1 || domain.startsWith(prefix))',
    rule: 'A watcher is told of the domains below its prefix only.',
    source: 'design 8, Watch',
  },
];
