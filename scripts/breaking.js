/**
 * `npm run check:breaking`: no change of the public API may break a client that was built from `proto-v1`. Compares with
 * the image of that version that is committed, which every checkout has; and where the tag is there too, with the tag, so
 * that nobody can mend a break by writing the image anew. The image was made once, at the tag, by
 * `buf build --exclude-source-info --path proto/fencepost/v1 -o proto/baseline/proto-v1.binpb`.
 */
import { spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { root } from './prepare.js';

const TAG = 'proto-v1';
const IMAGE = `proto/baseline/${TAG}.binpb`;

/**
 * True when nothing breaks against this version.
 * @param {string} against as `buf` takes it
 * @returns {boolean}
 */
function holds(against) {
  const buf = join(root, 'node_modules/.bin/buf');
  const { status } = spawnSync(buf, ['breaking', '--against', against], { cwd: root, stdio: 'inherit' });
  if (status !== 0) console.error(`a client built from ${against} would break: see above`);
  return status === 0;
}

const tag = spawnSync('git', ['rev-parse', '--quiet', '--verify', `refs/tags/${TAG}`], { cwd: root });
const versions = tag.status === 0 ? [IMAGE, `.git#tag=${TAG}`] : [IMAGE];
process.exit(versions.filter((version) => !holds(version)).length === 0 ? 0 : 1);
