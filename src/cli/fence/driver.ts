import { createRequire } from 'node:module';
import { join } from 'node:path';
import { codeOf, ResourceError, textOf } from './resource-error.js';

/**
 * The user's own driver: the package as a program in `folder` would get it. Fencepost depends on none, so that each project
 * keeps the version that it uses.
 */
export function loadDriver(name: string, folder: string): unknown {
  return loadOneOf([name], folder).driver;
}

/** As {@link loadDriver}: the first of these that is there, and its name. */
export function loadOneOf<Name extends string>(
  names: readonly Name[],
  folder: string,
): { readonly name: Name; readonly driver: unknown } {
  const require = createRequire(join(folder, 'fencepost.js'));
  let missing: unknown;
  for (const name of names) {
    let path: string;
    try {
      path = require.resolve(name);
    } catch (error) {
      if (codeOf(error) !== 'MODULE_NOT_FOUND') throw unusable(name, error);
      missing = error;
      continue;
    }
    try {
      return { name, driver: require(path) };
    } catch (error) {
      throw unusable(name, error);
    }
  }
  throw new ResourceError(
    'NO_DRIVER',
    `the package ${names.join(' or ')} is not installed in ${folder}: run this in the folder of the project that has it, or npm install ${names[0] ?? ''}`,
    { cause: missing },
  );
}

/** The package is there and does not work. */
export function unusable(name: string, cause: unknown): ResourceError {
  return new ResourceError('NO_DRIVER', `the package ${name} cannot be used: ${textOf(cause)}; install it anew`, {
    cause,
  });
}
