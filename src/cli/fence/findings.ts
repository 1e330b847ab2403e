import type { Finding } from './store.js';

/** Something to mend; doctor ends with another exit code then. */
export function fault(code: string, subject: unknown, message: string): Finding {
  return { code, subject: String(subject), message, weight: 'fault' };
}

/** Something to know that no set-up avoids. */
export function note(code: string, subject: unknown, message: string): Finding {
  return { code, subject: String(subject), message, weight: 'note' };
}
