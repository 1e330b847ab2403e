/** Whether patched sources still are programs: a switch that does not compile would prove nothing. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import ts from 'typescript';
import { root } from '../runner/bundle.js';
import { applyPatch, PatchMisfit } from '../runner/patch.js';
import type { Patch } from '../runner/patch.js';

/** What is left unused by the removal of its only use is no fault. */
const UNUSED = new Set([6133, 6192, 6196, 6198, 2578]);

/**
 * The faults of the production code with these sets of patches, one line each. Checks many sets at once, those together
 * that do not touch each other: one program costs half a second. Throws when a patch does not fit the source as it is.
 */
export function compileFaults(sets: readonly (readonly Patch[])[]): readonly string[] {
  const found: string[] = [];
  const parsed = new Map<string, ts.SourceFile | undefined>();
  let left = sets;
  while (left.length > 0) {
    const patched = new Map<string, string>();
    const later: (readonly Patch[])[] = [];
    for (const set of left) {
      const alone = withPatches(new Map(), set);
      try {
        for (const [path, text] of withPatches(patched, set)) patched.set(path, text);
      } catch (error) {
        if (!(error instanceof PatchMisfit) || alone.size === 0) throw error;
        later.push(set);
      }
    }
    found.push(...faultsOf(patched, parsed));
    left = later;
  }
  return found;
}

/** The files that `set` changes, by path, with it applied on top of `before`. */
function withPatches(before: ReadonlyMap<string, string>, set: readonly Patch[]): Map<string, string> {
  const after = new Map<string, string>();
  for (const patch of set) {
    const path = join(root, patch.file);
    after.set(path, applyPatch(after.get(path) ?? before.get(path) ?? readFileSync(path, 'utf8'), patch));
  }
  return after;
}

/** `parsed` keeps what is the same for every program. */
function faultsOf(
  patched: ReadonlyMap<string, string>,
  parsed: Map<string, ts.SourceFile | undefined>,
): readonly string[] {
  const config = join(root, 'src/tsconfig.json');
  const { options } = ts.parseJsonConfigFileContent(
    ts.readConfigFile(config, (path) => ts.sys.readFile(path)).config,
    ts.sys,
    join(root, 'src'),
  );
  const host = ts.createCompilerHost(options);
  const readSource = host.getSourceFile.bind(host);
  host.getSourceFile = (path, version, ...rest) => {
    const text = patched.get(path);
    if (text !== undefined) return ts.createSourceFile(path, text, version);
    if (!parsed.has(path)) parsed.set(path, readSource(path, version, ...rest));
    return parsed.get(path);
  };
  const program = ts.createProgram([...patched.keys()], { ...options, composite: false, noEmit: true }, host);
  const faults = [...patched.keys()].flatMap((path) => {
    const file = program.getSourceFile(path);
    return [...program.getSyntacticDiagnostics(file), ...program.getSemanticDiagnostics(file)];
  });
  return faults.filter(({ code }) => !UNUSED.has(code)).map((fault) => ts.formatDiagnostic(fault, host));
}
