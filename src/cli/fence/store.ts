/** The port of `fencepost fence`: what operators ask of a resource that keeps fences. One implementation a kind of resource. */

/** A fence as it is stored. */
export interface StoredFence {
  readonly domain: string;
  /** The greatest token accepted, with all its bits. */
  readonly token: bigint;
  /** Kind and name of the coordinator, e.g. `fencepost:prod`; undefined where nobody said. */
  readonly issuer: string | undefined;
  /** The history in which the token was granted; undefined where nobody said. */
  readonly incarnation: string | undefined;
  /** When it was raised, as ISO 8601; undefined where the resource does not keep that. */
  readonly raisedAt: string | undefined;
}

/** What mode `observe` let pass and `enforce` would have refused. Only of resources that can observe. */
export interface Observation {
  /** Where: the table. */
  readonly relation: string;
  /** What was done to it, e.g. `UPDATE`. */
  readonly operation: string;
  /** The error that `enforce` would have raised. */
  readonly code: string;
  /** Empty where the write named none. */
  readonly domain: string;
  readonly role: string;
  readonly application: string;
  readonly count: bigint;
  /** ISO 8601. */
  readonly firstAt: string;
  /** ISO 8601. */
  readonly lastAt: string;
}

/** Something that `doctor` has to say. */
export interface Finding {
  /** The kind of fault, for scripts. Never renamed or reused. */
  readonly code: string;
  /** The table, role, domain or setting that it is about. */
  readonly subject: string;
  /** What is the matter, and what to do about it. */
  readonly message: string;
  /** `fault` counts for the exit code; `note` is what no set-up of this resource avoids. */
  readonly weight: 'fault' | 'note';
}

/** What a resource says about itself. */
export interface Diagnosis {
  readonly findings: readonly Finding[];
  /** Can its fences be read? Not when there is no schema for them, or it is broken; a finding says which. */
  readonly readable: boolean;
}

/** A fence that an operator sets by hand. */
export interface ResetRequest {
  readonly domain: string;
  readonly token: bigint;
  /** For those who come later. Not empty. */
  readonly note: string;
  /** What is stored beside it; undefined leaves what stands. */
  readonly incarnation: string | undefined;
}

/** An open resource. Every method rejects with a `ResourceError`. */
export interface FenceStore {
  /** Kind and version of the server, for people. */
  readonly name: string;
  /**
   * Brings the schema to the shipped version; as often as one likes. Gives the version before, undefined when there was none.
   * Does nothing where the kind has no schema.
   */
  migrate(): Promise<number | undefined>;
  /** All fences, by domain. */
  fences(): AsyncIterable<StoredFence>;
  /** Undefined when nobody has advanced this domain. */
  fence(domain: string): Promise<StoredFence | undefined>;
  /** Of one domain, or of all. */
  observed(domain: string | undefined): Promise<readonly Observation[]>;
  /** Sets a fence that stands, up or down, and keeps the note. Gives the fence before; undefined, with nothing done, when there is none. */
  reset(request: ResetRequest): Promise<StoredFence | undefined>;
  diagnose(): Promise<Diagnosis>;
  close(): Promise<void>;
}

/** Where a resource is opened from. */
export interface Surroundings {
  /** The folder in whose `node_modules` the driver is looked for. */
  readonly folder: string;
  /** For connecting, and for each statement. */
  readonly timeoutMs: number;
}

/** What makes the schema of the fences. */
export interface Migration {
  readonly version: number;
  readonly sql: string;
}

/** A kind of resource. */
export interface ResourceKind {
  /** Of its addresses, without the colon. */
  readonly schemes: readonly string[];
  /** How an address looks, for people. */
  readonly form: string;
  /** What `migrate` applies; undefined where a resource needs no schema. */
  migration(): Migration | undefined;
  /** What is wrong with an address of one of the schemes, undefined when nothing is. */
  addressFault(address: string): string | undefined;
  /** Rejects with a `ResourceError`. */
  open(address: string, surroundings: Surroundings): Promise<FenceStore>;
}

/** A kind of resource whose fences need a schema. */
export interface SchemaKind extends ResourceKind {
  migration(): Migration;
}
