/** Makes one file of the simulator and the production code that it runs, with source patches applied on the way. */
import { mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { build } from 'vite';
import type { Plugin } from 'vite';
import { applyPatch } from './patch.js';
import type { Patch } from './patch.js';

/** The root of the repository: scripts and tests are run there. */
export const root = process.cwd();

/** Under `node_modules`, so that packages which are not bundled are found from there; one folder for each process. */
const folder = join(root, 'node_modules', '.cache', `fencepost-sim-${process.pid}`);
let files = 0;

/**
 * Bundles `entry` (relative to the root) with its imports into one ES module and returns the module's path. Packages stay
 * outside. Throws when a patch does not fit, and when the patched code does not parse.
 */
export async function bundle(entry: string, patches: readonly Patch[] = []): Promise<string> {
  const missed = new Set(patches);
  const built = await build({
    root,
    configFile: false,
    logLevel: 'silent',
    plugins: [patching(patches, missed)],
    build: {
      ssr: entry,
      write: false,
      minify: false,
      target: 'node20',
      sourcemap: 'inline',
      rolldownOptions: { output: { format: 'es', codeSplitting: false } },
    },
  });
  if (!('output' in built)) throw new Error(`${entry} was not bundled into one file`);
  for (const patch of missed) throw new Error(`${entry} does not load ${patch.file}, which a patch changes`);
  const [chunk] = built.output;
  mkdirSync(folder, { recursive: true });
  const path = join(folder, `${++files}.mjs`);
  writeFileSync(path, chunk.code);
  return path;
}

/** Removes what this process has bundled. */
export function removeBundles(): void {
  rmSync(folder, { recursive: true, force: true });
}

function patching(patches: readonly Patch[], missed: Set<Patch>): Plugin {
  return {
    name: 'fencepost-patches',
    enforce: 'pre',
    transform(code, id) {
      // A module that looks for files beside itself must go on finding them.
      let patched = code.replaceAll('import.meta.url', JSON.stringify(pathToFileURL(id).href));
      for (const patch of patches) {
        if (id !== join(root, patch.file)) continue;
        patched = applyPatch(patched, patch);
        missed.delete(patch);
      }
      return patched === code ? undefined : { code: patched, map: null };
    },
  };
}
