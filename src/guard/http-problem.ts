/** Refusals as `application/problem+json` (RFC 9457), and back. */
import type { LeaseMalformed, LeaseRequired } from './presented.js';
import type { Applied, FencedLease, Missing, Outcome, Rejected, Retry, Stale } from './types.js';

/** Whatever a service may answer instead of carrying a request out. */
export type HttpRefusal = Stale | Rejected | Missing | Retry | LeaseRequired | LeaseMalformed;

/** What is said of a refused request. */
export interface HttpProblem {
  /** 400, 404, 409, 412 or 428. */
  readonly status: number;
  /** Of the response. */
  readonly headers: Readonly<Record<'Content-Type' | 'Cache-Control', string>>;
  /** JSON. */
  readonly body: string;
}

/** Why a request was refused; the end of the problem's `type`. */
export type ProblemKind = 'required' | 'malformed' | 'stale' | Rejected['reason'] | 'missing' | 'retry';

const TYPE = 'urn:fencepost:problem:';
const MEDIA_TYPE = 'application/problem+json';

/**
 * The status alone tells a client that knows nothing of fences whether it may try again: 412 never, the fence has refused
 * this lease, for whatever cause; 409 yes, only others were in the way.
 */
const KINDS: Record<ProblemKind, { readonly status: number; readonly title: string }> = {
  required: { status: 428, title: 'The request needs a lease' },
  malformed: { status: 400, title: 'The fencing fields of the request cannot be read' },
  stale: { status: 412, title: 'A greater token was accepted' },
  issuer: { status: 412, title: 'The fence belongs to another cluster' },
  incarnation: { status: 412, title: 'The token was accepted in another incarnation' },
  jump: { status: 412, title: 'The token is too far above the fence' },
  missing: { status: 404, title: 'What was to be changed is not there' },
  retry: { status: 409, title: 'Others were in the way' },
};

const REASONS = ['issuer', 'incarnation', 'jump'] as const satisfies readonly Rejected['reason'][];

/** The answer to a request that was refused, under the leases that it presented. Tokens are decimal texts in it. */
export function problemOf(refusal: HttpRefusal, leases: readonly FencedLease[]): HttpProblem {
  const kind = refusal.status === 'rejected' ? refusal.reason : refusal.status;
  const { status, title } = KINDS[kind];
  const presented = leases.map((lease) => ({ ...lease, token: lease.token.toString() }));
  const document = { type: TYPE + kind, title, status, ...particularsOf(refusal), presented };
  return {
    status,
    headers: { 'Content-Type': MEDIA_TYPE, 'Cache-Control': 'no-store' },
    body: JSON.stringify(document),
  };
}

function particularsOf(refusal: HttpRefusal): Readonly<Record<string, unknown>> {
  switch (refusal.status) {
    case 'required':
      return {
        detail:
          `send a lease of ${refusal.domains.join(', ')} in Fencing-Domain, Fencing-Token, Fencing-Cluster and ` +
          'Fencing-Incarnation',
        required: refusal.domains,
      };
    case 'malformed':
      return { detail: refusal.faults.join('; '), faults: refusal.faults };
    case 'stale':
      return {
        detail: `token ${refusal.fence} was accepted before. Stop the work of this lease; do not send it again.`,
        fence: refusal.fence.toString(),
      };
    case 'rejected':
      return { detail: refusal.message };
    case 'missing':
      return { detail: 'the fence let the request pass, and what it was to change is not there' };
    case 'retry':
      return {
        detail: `given up ${refusal.attempts} times because of others at the same time; try again after a pause`,
        attempts: refusal.attempts,
      };
  }
}

/** A refusal as a client reads it. */
export type ReceivedRefusal =
  | Exclude<Outcome<never>, Applied<never>>
  | { readonly status: 'required'; readonly message: string }
  | { readonly status: 'malformed'; readonly message: string };

/** The refusal in an answer; undefined when it is none of ours, or not whole. */
export function refusalFrom(mediaType: string | null, body: string): ReceivedRefusal | undefined {
  if (!isProblem(mediaType)) return undefined;
  let document: Readonly<Record<string, unknown>>;
  try {
    document = Object(JSON.parse(body)) as Readonly<Record<string, unknown>>;
  } catch {
    return undefined;
  }
  const { type, detail, fence, attempts } = document;
  const message = typeof detail === 'string' ? detail : '';
  const kind = typeof type === 'string' && type.startsWith(TYPE) ? type.slice(TYPE.length) : undefined;
  const reason = REASONS.find((each) => each === kind);
  if (reason !== undefined) return { status: 'rejected', reason, message };
  switch (kind) {
    case 'required':
    case 'malformed':
      return { status: kind, message };
    case 'stale':
      return typeof fence === 'string' && /^[0-9]{1,19}$/.test(fence)
        ? { status: kind, fence: BigInt(fence) }
        : undefined;
    case 'missing':
      return { status: kind };
    case 'retry':
      return typeof attempts === 'number' ? { status: kind, attempts, cause: message } : undefined;
    case undefined:
    default:
      return undefined;
  }
}

/** Whether an answer may be one of ours, before its body is read. */
export function isProblem(mediaType: string | null): boolean {
  return mediaType?.split(';')[0]?.trim().toLowerCase() === MEDIA_TYPE;
}
