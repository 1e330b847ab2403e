/** The code of an error that the client library throws on purpose; anything else is passed on. */
export function codeOf(error: unknown): string {
  if (error instanceof Error && 'code' in error && error.name.endsWith('Error') && typeof error.code === 'string')
    return error.code;
  throw error;
}
