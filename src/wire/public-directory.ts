import { fileURLToPath } from 'node:url';

/**
 * The folder of the `.proto` files. It lies beside `src` in the repository and beside `dist` in the package, so the
 * same relative path serves the sources, the build and an installed package.
 */
export const PROTO_DIRECTORY = fileURLToPath(new URL('../../proto/', import.meta.url));
